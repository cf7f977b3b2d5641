"""Runs with pretrained embeddings: killed and resumed without the file, averaged, and used as a start."""

import json
import signal
from pathlib import Path

import pytest
import torch
from training_runs import RUN, SETTINGS, Process, Server, differences, outcome, wait_until_reached, write_corpus

from dragoman.checkpoint.folder import load_model_folder
from dragoman.checkpoint.tensors import load_tensors

TEXT = [setting for setting in SETTINGS if not setting.startswith("text.")]
TEXT += ["text.subword.kind=word", "text.subword.min_frequency=1", "text.shared=false", "model.tie_embeddings=false"]
FROZEN = ["model.embeddings.source=en.vec", "model.embeddings.frozen=true", "model.tie_projection=false"]
TABLE = "encoder.embedding.tokens.weight"
WORDS = "dog cat man park runs sees two old red house"  # tree and bird, of the corpus's 12 words, are missing


def prepared(folder: Path, *settings: str) -> list[str]:
    """Write a corpus and vectors of size 16; returns the command."""
    folder.mkdir()
    draw = torch.Generator().manual_seed(1)
    lines = [f"{word} {' '.join(map(str, torch.randn(16, generator=draw).tolist()))}" for word in WORDS.split()]
    (folder / "en.vec").write_text("\n".join([f"{len(lines)} 16", *lines]) + "\n", encoding="utf-8")
    return ["train", *write_corpus(folder), *TEXT, *settings]


def finished(process: Process) -> str:
    assert process.wait() == 0, process.said
    return process.said


def table(folder: Path) -> torch.Tensor:
    return load_tensors(folder / "model.safetensors")[0][TABLE]


def test_a_frozen_table_survives_kills_averages_and_the_loss_of_its_file(server: Server, tmp_path: Path) -> None:
    outcomes = []
    for name in ("straight", "killed"):
        folder = tmp_path / name
        rhythm = ["train.max_steps=12", "train.validate_every=6", "train.checkpoint_every=3", "train.log_every=1"]
        command = prepared(folder, *FROZEN, "train.ema=0.9", *rhythm)
        process = server.start(folder, *command, tick=0.02 if name == "killed" else None)
        if name == "killed":
            wait_until_reached(process, 4)
            process.kill()
            assert process.wait() == -signal.SIGKILL
            assert "entries of the source vocabulary (83.3%) are initialised from en.vec" in process.said
            (folder / "en.vec").unlink()
            process = server.start(folder, *command, "--resume")
        assert ("Embeddings:" in finished(process)) == (name == "straight")
        assert ("Resuming at step" in process.said) == (name == "killed")
        outcomes.append(outcome(folder))
    assert differences(*outcomes) == []

    run = tmp_path / "killed" / RUN
    meta = json.loads((run / "meta.json").read_text(encoding="utf-8"))
    assert meta["embeddings"] == {"source": 0.8333}
    folders = sorted((run / "checkpoints").iterdir())
    assert len(folders) > 1
    assert all(torch.equal(table(each), table(run)) for each in folders)
    names = {name.rpartition("/")[0] for name in load_tensors(max((run / "training").glob("step-*/optim*")))[0]}
    assert TABLE not in names
    assert "decoder.embedding.tokens.weight" in names

    finished(server.start(tmp_path, "average", *map(str, folders), "-o", "mean"))
    assert torch.equal(table(tmp_path / "mean"), table(run))
    assert json.loads((tmp_path / "mean" / "meta.json").read_text(encoding="utf-8"))["embeddings"] == {"source": 0.8333}


@pytest.mark.slow
def test_a_run_may_start_from_the_model_without_the_file_and_train_the_table(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "first"
    command = prepared(folder, *FROZEN, "train.max_steps=8")
    finished(server.start(folder, *command))
    (folder / "en.vec").unlink()
    free = [setting for setting in command if not setting.startswith(("model.", "text."))]
    for out, settings, learns in (
        ("kept", free, False),
        ("freed", [*command, "model.embeddings.frozen=false"], True),
    ):
        # `--out` was the first run's
        given = [out if setting == RUN else setting for setting in settings]
        said = finished(server.start(folder, *given, f"train.start={RUN}"))
        assert "Embeddings:" not in said
        assert torch.equal(table(folder / out), table(folder / RUN)) != learns
        assert load_model_folder(folder / out, torch.device("cpu")).meta.embeddings == {"source": 0.8333}
    other = [setting for setting in command if not setting.startswith("model.embeddings.frozen")]
    other = ["other" if setting == RUN else setting for setting in other]
    process = server.start(folder, *other, "model.embeddings.target=de.vec", f"train.start={RUN}")
    assert process.wait() != 0
    assert "model.embeddings.target ('de.vec' in this run, None in the folder)" in process.said


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.embeddings.source=nowhere.vec"], "There is no file nowhere.vec"),
        (["model.embeddings.source=en.vec", "model.width=32"], "set model.width=16"),
        (["model.embeddings.source=en.vec", "model.preset=auto", "model.width=32"], "set model.width=16"),
        (["model.embeddings.source=train.a"], "line 1: not a word and its numbers"),
    ],
)
def test_unusable_files_stop_the_run_before_anything_is_written(
    server: Server, tmp_path: Path, settings: list[str], message: str
) -> None:
    folder = tmp_path / "run"
    process = server.start(folder, *prepared(folder, *settings))
    assert process.wait() != 0
    assert message in process.said
    assert "Traceback" not in process.said
    assert not (folder / "prepared").exists()
    assert not (folder / RUN / "config.yaml").exists()


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_reads_the_file_again(server: Server, tmp_path: Path) -> None:
    settings = ["model.embeddings.source=en.vec", "train.max_steps=4", "train.checkpoint_every=2"]
    straight = tmp_path / "straight"
    command = prepared(straight, *settings)
    finished(server.start(straight, *command))
    for fatal in range(18, 40):
        folder = tmp_path / str(fatal)
        prepared(folder)
        assert server.start(folder, *command, fatal=fatal).wait() == -signal.SIGKILL
        if (folder / RUN / "config.yaml").exists():
            break
    assert not list((folder / RUN / "training").glob("step-*"))
    said = finished(server.start(folder, *command, "--resume"))
    assert "Embeddings: 10 of 12 entries" in said
    assert differences(outcome(straight), outcome(folder)) == []
    first, *_, last = sorted((folder / RUN / "checkpoints").iterdir())
    assert not torch.equal(table(first), table(last))
