"""A run that is interrupted leaves a model folder, which every command calls the model of an unfinished run."""

import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import RUN, SETTINGS, differences, outcome, write_corpus

from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.run_state import LOCK
from dragoman.cli.main import main
from dragoman.tasks.translation.validation import Validator
from dragoman.training.machine import interruption
from dragoman.training.run import loop
from dragoman.training.updates.engine import Engine

LENGTH = ["train.max_steps=12", "train.validate_every=6", "train.checkpoint_every=5", "train.average.count=0"]
Stop = Callable[[int, Callable[[], Any]], None]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of a run with 12 updates."""
    monkeypatch.chdir(tmp_path)
    return ["train", *write_corpus(tmp_path), *SETTINGS, *LENGTH]


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    """Call a function in the n-th update of the run."""

    def at(number: int, act: Callable[[], Any]) -> None:
        launch, made = Engine.launch, 0

        def counted(self: Engine, *arguments: Any) -> Any:
            nonlocal made
            made += 1
            if made == number:
                act()
            return launch(self, *arguments)

        monkeypatch.setattr(Engine, "launch", counted)

    return at


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.slow
def test_a_run_without_a_validation_leaves_its_newest_model(
    command: list[str], stop: Stop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "launch", Engine.launch)
        stop(3, send(signal.SIGTERM))
        assert main(command) == 143
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == (
        f"interrupted at step 3; everything is saved, and {RUN} contains the model of step 3, not validated yet. "
        f"Resume with: dragoman train --resume --out {RUN}"
    )
    meta = read_meta(Path(RUN))
    assert (meta.step, meta.unfinished, meta.planned_steps, meta.scores) == (3, True, 12, ())
    what = f"{RUN} is a run interrupted at step 3 of 12, not validated yet; `dragoman train --resume --out {RUN}`"
    for use in (["evaluate", RUN, "--source", "valid.a", "--reference", "valid.b"], ["describe", RUN]):
        assert main(use) == 0
        assert capsys.readouterr().err.count(what) == 1
    assert main(["train", "--resume", "--out", RUN]) == 0
    assert not read_meta(Path(RUN)).unfinished
    capsys.readouterr()
    assert main(["describe", RUN]) == 0
    assert "interrupted" not in capsys.readouterr().err
    resumed = outcome(tmp_path)
    whole = tmp_path / "whole"
    whole.mkdir()
    os.chdir(whole)
    write_corpus(whole)
    assert main(command) == 0
    assert differences(outcome(whole), resumed) == []


def test_a_validated_run_keeps_its_best_model(
    command: list[str], stop: Stop, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(8, send(signal.SIGTERM))
    assert main(command) == 143
    assert f"{RUN} contains the best model, of step 6. Resume" in capsys.readouterr().err
    assert read_meta(Path(RUN)).scores
    assert main(["describe", RUN]) == 0
    assert f"{RUN} is a run interrupted at step 8 of 12, this is its best model so far, of step 6; " in (
        capsys.readouterr().err
    )


def test_a_signal_in_the_first_validation_leaves_a_model(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    validate = Validator.run

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return validate(*arguments)

    monkeypatch.setattr(Validator, "run", interrupted)
    assert main([*command, "train.validate_every=100", "train.max_steps=4"]) == 143
    assert f"{RUN} contains the model of step 4, not validated yet" in capsys.readouterr().err
    assert (read_meta(Path(RUN)).step, read_meta(Path(RUN)).unfinished) == (4, True)


@pytest.mark.slow
def test_a_second_signal_in_an_update_keeps_the_newest_snapshot(
    command: list[str], stop: Stop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        monkeypatch.setattr(interruption.time, "monotonic", lambda: 1e9)  # long after the first one
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "launch", Engine.launch)
        stop(7, twice)
        assert main([*command, "train.validate_every=100"]) == 130
    assert f"{RUN} contains the model of step 5, not validated yet" in capsys.readouterr().err
    assert read_meta(Path(RUN)).step == 5
    assert main(["train", "--resume", "--out", RUN]) == 0


def test_signals_while_a_run_is_saved_lose_nothing(
    command: list[str], stop: Stop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = loop.save_snapshot

    def interrupted(session: Any, progress: Any) -> None:
        if progress.step == 3:
            monkeypatch.setattr(interruption.time, "monotonic", lambda: 1e9)
            os.kill(os.getpid(), signal.SIGTERM)
        save(session, progress)

    monkeypatch.setattr(loop, "save_snapshot", interrupted)
    stop(3, send(signal.SIGTERM))
    assert main(command) == 143
    assert "interrupted at step 3; everything is saved" in capsys.readouterr().err
    assert read_meta(Path(RUN)).step == 3


def test_a_run_without_a_saved_update_says_so(
    command: list[str], stop: Stop, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    stop(1, fail)
    assert main(command) == 130
    assert "no update was saved yet" in capsys.readouterr().err
    for state in ("before its first update was saved, so it has no model", "while it prepared its data"):
        assert main(["evaluate", RUN, "--source", "valid.a", "--reference", "valid.b"]) == 1
        assert state in capsys.readouterr().err
        (Path(RUN) / "config.yaml").unlink(missing_ok=True)


def test_a_killed_run_without_a_model_says_how_to_continue(
    command: list[str], stop: Stop, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(6, send(signal.SIGTERM))
    assert main([*command, "train.validate_every=100"]) == 143
    for path in ("model.safetensors", "checkpoints/step-00000005/model.safetensors"):
        (Path(RUN) / path).unlink()
    (Path(RUN) / "checkpoints" / "step-00000005").rename("removed")
    capsys.readouterr()
    assert main(["describe", RUN]) == 1
    message = f"{RUN} is a run interrupted after step 6, before it had written a model; `dragoman train --resume"
    assert message in capsys.readouterr().err


def test_a_finished_run_that_is_resumed_and_interrupted_has_its_earlier_model(
    command: list[str], stop: Stop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = {}
    monkeypatch.setattr(loop, "info", lambda text: locked.update({text.split(",")[0]: _is_locked(Path(RUN))}))
    assert main([*command, "train.max_steps=6"]) == 0
    assert locked["Training ended after 6 steps"] is False
    meta = read_meta(Path(RUN))
    stop(2, send(signal.SIGTERM))
    assert main(["train", "--resume", "--out", RUN, "train.max_steps=20"]) == 143
    assert f"interrupted at step 8; everything is saved, and {RUN} contains the best model, of step 6. Resume with" in (
        capsys.readouterr().err
    )
    assert read_meta(Path(RUN)) == meta.model_copy(update={"unfinished": True, "planned_steps": 20})
    assert main(["describe", RUN]) == 0
    assert f"{RUN} is a run interrupted at step 8 of 20, this is its best model so far, of step 6; " in (
        capsys.readouterr().err
    )
    assert main(["average", f"{RUN}/checkpoints/step-00000006", "--out", "mean"]) == 0
    assert f"{RUN} is a run interrupted at step 8 of 20: later checkpoints may be better; " in capsys.readouterr().err


def _is_locked(run: Path) -> bool:
    with (run / LOCK).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
