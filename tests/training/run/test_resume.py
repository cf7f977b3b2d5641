"""Resuming a run: decisions by the clock are repeated, limits may change, other settings may not."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from training_runs import RUN, SETTINGS, Server, differences, log_lines, outcome, wait_until_reached, write_corpus

from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import load_model_folder
from dragoman.checkpoint.store import CheckpointStore
from dragoman.tasks.registry import open_job
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.run.setup import assemble

EVERY = "train.log_every=1"
TWENTY = ["train.max_steps=20", "train.validate_every=10"]


def rates_and_losses(folder: Path, last: int) -> list[tuple[int, float, float]]:
    lines = [line for line in log_lines(folder) if "loss" in line and line["step"] <= last]
    return [(line["step"], line["learning_rate"], line["loss"]) for line in lines]


def trained(folder: Path) -> dict[str, Any]:
    """Return the newest snapshot's tensors, and the losses."""
    found = outcome(folder)
    kept = {name: content for name, content in found.items() if name.startswith("training/")}
    return {**kept, "log": [line for line in found["log"] if "loss" in line]}


def finish(server: Server, folder: Path, *arguments: str) -> str:
    process = server.start(folder, *arguments)
    assert process.wait() == 0, process.said
    return process.said


@pytest.fixture(scope="module")
def twenty(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 20 steps."""
    folder = tmp_path_factory.mktemp("twenty")
    finish(server, folder, "train", *write_corpus(folder), *SETTINGS, *TWENTY)
    return folder


@pytest.fixture
def folder(twenty: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copytree(twenty, tmp_path / "copy"))


@pytest.fixture
def command(folder: Path) -> list[str]:
    return ["train", *write_corpus(folder), *SETTINGS, *TWENTY]


@pytest.mark.slow
def test_decisions_by_the_clock_are_repeated(server: Server, tmp_path: Path) -> None:
    """A cosine is refitted to the time limit, which decides the last step; a later kill changes none of it."""
    never = ["train.checkpoint_every=100000", "train.validate_every=100000"]
    clock = ["train.max_steps=null", "train.max_minutes=0.05", "train.schedule.kind=cosine"]
    command = ["train", *write_corpus(tmp_path), *SETTINGS, *never, *clock, EVERY]
    process = server.start(tmp_path, *command, tick=0.05)
    wait_until_reached(process, 22)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    first = rates_and_losses(tmp_path, 22)
    assert len(first) == 22

    process = server.start(tmp_path, *command, "--resume", tick=0.07)  # a slower machine
    assert process.wait() == 0, process.said
    assert "Resuming at step 0" in process.said
    assert rates_and_losses(tmp_path, 22) == first
    expected = outcome(tmp_path)
    last = expected["state"]["step"]
    assert 22 < last < 60
    assert expected["state"]["state"]["finished"] == "train.max_minutes=0.05 reached"

    shutil.rmtree(tmp_path / RUN / "training" / f"step-{last:08d}")
    process = server.start(tmp_path, *command, "--resume", tick=0.01)  # a much faster one
    assert process.wait() == 0, process.said
    assert "Resuming at step 0" in process.said
    assert differences(outcome(tmp_path), expected) == []


def test_a_finished_run_continues_to_new_limits(
    server: Server, folder: Path, command: list[str], tmp_path: Path
) -> None:
    straight = tmp_path / "straight"
    straight.mkdir()
    rhythm = ["train.validate_every=10", "train.max_steps=24"]
    finish(server, straight, "train", *write_corpus(straight), *SETTINGS, *rhythm)
    finish(server, folder, *command, "--resume", "train.max_steps=24")
    assert differences(trained(folder), trained(straight)) == []


@pytest.mark.parametrize("every", [12, pytest.param(2, marks=pytest.mark.slow)])
def test_a_kill_while_limits_change_does_not_lose_them(
    server: Server, folder: Path, command: list[str], tmp_path: Path, every: int
) -> None:
    """Killed during the first writes in turn, at one of `every` writes; then resumed without repeating the limit."""
    for fatal in range(1, 24, every):
        process = server.start(folder, *command, "--resume", "train.max_steps=23", fatal=fatal)
        assert process.wait() == -signal.SIGKILL, fatal
    assert "Resuming at step 20" in finish(server, folder, "train", "--resume", "--out", RUN)
    state = outcome(folder)["state"]["state"]
    assert state["step"] == state["horizon"]["end"] == 23


def test_a_resumed_finished_run_changes_nothing(server: Server, folder: Path, command: list[str]) -> None:
    expected = outcome(folder)
    finish(server, folder, *command, "--resume")
    finish(server, folder, "train", "--resume", "--out", RUN)
    assert differences(outcome(folder), expected) == []


@pytest.mark.slow
def test_a_limit_below_the_step_reached_ends_the_run_with_a_model(server: Server, tmp_path: Path) -> None:
    """Killed before its first validation, then resumed with a limit below its step."""
    command = ["train", *write_corpus(tmp_path), *SETTINGS, "train.validate_every=100", EVERY]
    process = server.start(tmp_path, *command)
    wait_until_reached(process, 9)
    process.kill()
    process.wait()
    finish(server, tmp_path, *command, "--resume", "train.max_steps=3")
    meta = json.loads((tmp_path / RUN / "meta.json").read_text())
    assert meta["step"] == outcome(tmp_path)["state"]["step"] >= 7
    load_model_folder(tmp_path / RUN, torch.device("cpu"))


@pytest.mark.slow
def test_more_patience_continues_a_run_that_patience_ended(server: Server, tmp_path: Path) -> None:
    still = ["train.schedule.peak=1e-12", "train.validate_every=2", "train.max_steps=20", "train.metric=bleu"]
    command = ["train", *write_corpus(tmp_path), *SETTINGS, *still]
    finish(server, tmp_path, *command, "train.patience=2")
    assert outcome(tmp_path)["state"]["step"] == 6
    finish(server, tmp_path, *command, "train.patience=3", "--resume")
    assert outcome(tmp_path)["state"]["step"] == 8
    assert outcome(tmp_path)["state"]["state"]["finished"] == "3 validations without improvement"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("train.seed=9", "train.seed (was 1, now 9)"),
        ("model.width=32", "model.width (was 16, now 32)"),
        ("data.batch.tokens=300", "data.batch.tokens (was 200, now 300)"),
        ("train.schedule.peak=0.5", "train.schedule.peak"),
        ("train.ema=0.9", "train.ema (was 0.998, now 0.9)"),
        ("train.schedule.kind=constant", "train.schedule.kind"),
    ],
)
def test_other_settings_are_refused(server: Server, twenty: Path, change: str, named: str) -> None:
    before = outcome(twenty)
    process = server.start(twenty, "train", "--resume", "--out", RUN, change)
    assert process.wait() == 2
    assert named in process.said
    assert "cannot resume run with other settings" in process.said
    assert differences(outcome(twenty), before) == []


@pytest.mark.slow
def test_a_run_resumes_with_the_settings_of_another_machine(server: Server, folder: Path) -> None:
    on = ["train", "--resume", "--out", RUN, "train.max_steps=22"]
    said = finish(server, folder, *on, "train.threads=2", "train.precision=bfloat16")
    assert "train.precision was 'float32' and is now 'bfloat16', train.threads was 1 and is now 2: sums round" in said
    stored = load_settings(folder / RUN / "config.yaml", [], TranslationRun).train
    assert (stored.precision, stored.threads, stored.device) == ("bfloat16", 2, "cpu")
    assert outcome(folder)["state"]["step"] == 22


def test_a_run_from_a_gpu_resumes_without_one(server: Server, folder: Path) -> None:
    settings = folder / RUN / "config.yaml"
    settings.write_text(settings.read_text().replace("device: cpu", "device: cuda:9"))
    on = ["train", "--resume", "--out", RUN, "train.max_steps=22"]
    process = server.start(folder, *on)
    assert process.wait() == 2
    assert "the device 'cuda:9' is not available on this machine" in process.said
    assert "train.device was 'cuda:9' and is now 'cpu'" in finish(server, folder, *on, "train.device=cpu")
    assert outcome(folder)["state"]["step"] == 22


def test_a_folder_with_a_run_requires_resume(server: Server, twenty: Path) -> None:
    before = outcome(twenty)
    process = server.start(twenty, "train", *write_corpus(twenty), *SETTINGS, *TWENTY)
    assert process.wait() == 2
    assert "run already contains a training run: add --resume" in process.said
    assert differences(outcome(twenty), before) == []


def test_another_corpus_is_refused(server: Server, folder: Path, command: list[str]) -> None:
    before = outcome(folder)
    with (folder / "train.a").open("a") as source, (folder / "train.b").open("a") as target:
        source.write("a new dog\n")
        target.write("god wen a\n")
    process = server.start(folder, *command, "--resume")
    assert process.wait() == 2
    assert "has changed since the run started" in process.said
    assert differences(outcome(folder), before) == []


def test_another_validation_set_is_refused(server: Server, folder: Path, command: list[str]) -> None:
    """The best checkpoint so far was the best on the old set."""
    before = outcome(folder)
    (folder / "valid.b").write_text((folder / "valid.a").read_text())
    process = server.start(folder, *command, "--resume")
    assert process.wait() == 2
    assert "valid.a + valid.b has changed since the run started" in process.said
    assert differences(outcome(folder), before) == []


def test_a_second_process_is_refused(server: Server, twenty: Path) -> None:
    before = outcome(twenty)
    with CheckpointStore(twenty / RUN):
        process = server.start(twenty, "train", "--resume", "--out", RUN)
        assert process.wait() == 1
    assert f"run is in use by process {os.getpid()}" in process.said
    assert differences(outcome(twenty), before) == []


def test_the_number_of_threads_is_the_runs_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding depends on it, so a resumed run without train.threads must not use the machine's number."""
    monkeypatch.chdir(folder)
    path = folder / RUN / "config.yaml"
    stored = yaml.safe_load(path.read_text())
    stored["train"]["threads"] = 3
    path.write_text(yaml.safe_dump(stored))
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    with assemble(
        load_settings(path, ["train.threads=null", "train.device=auto"], TranslationRun), open_job, resume=True
    ) as session:
        assert asked == [3]
        assert session.config.threads == 3
        assert str(session.engine.runtime.device) == "cpu"


@pytest.mark.parametrize(
    "schedule",
    [
        ["train.schedule.warmup=0", "train.schedule.peak=1e4"],
        pytest.param(["train.schedule.warmup=1e5", "train.schedule.peak=1e4"], marks=pytest.mark.slow),  # 0.1 per step
    ],
)
def test_divergence_ends_the_run_and_keeps_the_checkpoints(server: Server, tmp_path: Path, schedule: list[str]) -> None:
    settings = ["train.schedule.kind=constant", *schedule, "train.clip=null", "train.checkpoint_every=1"]
    rhythm = ["train.validate_every=4", "train.max_steps=500", "train.patience=null", EVERY]
    command = ["train", *write_corpus(tmp_path), *SETTINGS, *settings, *rhythm]
    process = server.start(tmp_path, *command)
    assert process.wait() == 1
    assert "training diverged at step" in process.said
    assert "lower train.schedule.peak" in process.said
    assert "Traceback" not in process.said
    checkpoints = sorted((tmp_path / RUN / "checkpoints").iterdir())
    assert checkpoints
    for folder in checkpoints:
        model = load_model_folder(folder, torch.device("cpu")).model
        assert all(parameter.isfinite().all() for parameter in model.parameters())
    before = outcome(tmp_path)
    process = server.start(tmp_path, *command, "--resume")
    assert process.wait() == 1
    assert "training diverged at step" in process.said
    assert differences(outcome(tmp_path), before) == []
