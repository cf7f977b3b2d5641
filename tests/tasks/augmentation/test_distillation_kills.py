"""A distillation that is killed, in either phase, and resumed ends like an uninterrupted one."""

import shutil
from pathlib import Path

import pytest
from trained_model import FOLDER as TEACHER
from trained_model import PAIRS
from training_runs import RUN, Server, differences, outcome

COMMAND = [
    *("distill", "teacher", "--student", "tiny-fast", "--out", RUN, "--batch-size", "1", "--beam", "2"),
    *("model.width=8", "model.encoder.layers=1", "model.encoder.heads=2", "model.decoder.heads=2"),
    *("train.max_steps=8", "train.validate_every=4", "train.checkpoint_every=3", "train.log_every=1"),
    *("train.average.count=0", "train.threads=1", "train.precision=float32", "data.batch.tokens=200"),
]


@pytest.mark.slow
def test_a_killed_distillation_is_resumed_in_either_phase(server: Server, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        shutil.copytree(TEACHER, folder / "teacher")
        lines = (f"{source} {number}\t{target} {number}\n" for number in range(8) for source, target in PAIRS)
        (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    process = server.start(whole, *COMMAND)
    assert process.wait() == 0, process.said
    calls = int((whole / "calls").read_text())

    def kill(fatal: int) -> None:
        process = server.start(killed, *COMMAND, "--resume", fatal=fatal)
        assert process.wait() == -9, process.said

    for fatal in (4, 4):  # windows of lines are committed one after another
        kill(fatal)
        (work,) = (killed / "distilled").glob("*.partial")
        assert not list((killed / "distilled").glob("*.tsv"))
        assert not (killed / RUN).exists()
    kept = (work / "text").read_text(encoding="utf-8").splitlines()
    assert 0 < len(kept) < len(PAIRS) * 8
    kill(calls // 2)
    assert list((killed / "distilled").glob("*.tsv"))
    assert not list((killed / "distilled").glob("*.partial"))
    assert (killed / RUN / "config.yaml").exists()
    process = server.start(killed, *COMMAND, "--resume")
    assert process.wait() == 0, process.said
    assert "Reusing translations of pairs.tsv" in process.said
    assert "Resuming at step" in process.said
    made = [{path.name: path.read_bytes() for path in (folder / "distilled").iterdir()} for folder in (whole, killed)]
    assert made[0] == made[1]
    assert len(made[0]) == 1
    assert not differences(outcome(whole), outcome(killed))
