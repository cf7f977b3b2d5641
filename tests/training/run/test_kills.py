"""A run that is killed repeatedly, at any time, and resumed ends like an uninterrupted run, bit for bit."""

import random
import shutil
import time
from pathlib import Path

import pytest
from training_runs import RUN, SETTINGS, Server, differences, log_lines, outcome, reached, write_corpus

VARIANTS = {
    "plain": (8, ["train.metric=loss"]),
    "plain, many times": (40, ["train.metric=loss"]),
    "accumulated and moving average, float16": (
        5,
        [
            "train.accumulate=2",
            "train.ema=0.8",
            "data.batch.tokens=150",
            "train.precision=float16",
            "train.dropout_epochs=9",
        ],
    ),
    "resampled subwords in packed batches": (
        3,
        [
            *("text.subword.dropout=0.1", "text.shared=false", "data.batch.packed=true"),
            *("train.metric=loss", "train.average.of=best"),
        ],
    ),
}
"""Numbers of kills, and settings. Half of the kills are timed, half come during a write."""
VARIANTS["all settings together"] = (
    3,
    [setting for _, settings in list(VARIANTS.values())[2:] for setting in settings],
)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_killed_and_resumed_run_ends_bit_identical(server: Server, tmp_path: Path, variant: str) -> None:
    wanted, settings = VARIANTS[variant]
    draw = random.Random(variant)
    untouched = tmp_path / "untouched"
    untouched.mkdir()
    command = ["train", *write_corpus(untouched), *SETTINGS, "train.max_steps=30", *settings]
    started = time.monotonic()
    process = server.start(untouched, *command)
    assert process.wait() == 0, process.said
    duration, calls = time.monotonic() - started, int((untouched / "calls").read_text())
    expected = outcome(untouched)
    assert [line["step"] for line in expected["log"] if "loss" in line] == list(range(5, 31, 5))
    assert len([name for name in expected if name.startswith("checkpoints/")]) > 8

    kills = finished = attempts = 0
    in_writing, at_steps = set(), set()
    folder = tmp_path / "killed"
    while kills < wanted or not finished:
        if not folder.exists():
            folder.mkdir()
            write_corpus(folder)
        attempts += 1
        by_clock, in_writes = kills < wanted and attempts % 2 == 0, kills < wanted and attempts % 2 == 1
        fatal = draw.randrange(1, calls // 5) if in_writes else None
        process = server.start(folder, *command, "--resume", fatal=fatal)
        if by_clock:
            time.sleep(draw.uniform(0.02, 0.3) * duration)
            process.kill()
        code = process.wait()
        if code == -9:
            kills += 1
            at_steps.add(reached(folder))
            in_writing |= {path.parents[1].name for path in (folder / RUN).glob("*/.step-*.partial/*")}
            continue
        assert code == 0, process.said
        assert differences(outcome(folder), expected) == []
        assert not list((folder / RUN).rglob("*.partial")), "a killed process' temporaries were left behind"
        if kills < wanted:  # restart from the beginning
            shutil.rmtree(folder)
        else:
            finished += 1
    assert len(at_steps) >= min(wanted // 2, 4), "the kills all came at the same place"
    assert in_writing & {"checkpoints", "training"}, "no kill came in the middle of writing a checkpoint"


@pytest.mark.slow
def test_a_damaged_newest_snapshot_costs_only_time(server: Server, tmp_path: Path) -> None:
    command = ["train", *write_corpus(tmp_path), *SETTINGS, "train.max_steps=16"]
    assert server.start(tmp_path, *command).wait() == 0
    expected = outcome(tmp_path)
    newest = tmp_path / RUN / "training" / "step-00000016" / "optimiser.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    process = server.start(tmp_path, *command, "--resume")
    assert process.wait() == 0, process.said
    assert "cannot resume from" in process.said
    assert "Resuming at step 14" in process.said
    assert differences(outcome(tmp_path), expected) == []
    assert [line["step"] for line in log_lines(tmp_path) if "loss" in line] == [5, 10, 15, 16]
