"""A signal ends a run after the current step, with everything saved; a later one ends it at once."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from training_runs import (
    RUN,
    SETTINGS,
    Server,
    differences,
    log_lines,
    outcome,
    process_environment,
    reached,
    wait_until_reached,
    write_corpus,
)
from waiting import PATIENCE, wait_until

from dragoman.cli.main import main
from dragoman.tasks.translation.validation import Validation, Validator
from dragoman.training.machine.interruption import Interruption, catch_signals

LAST = 18
STEPS = [*SETTINGS, "train.log_every=1", f"train.max_steps={LAST}"]


@pytest.fixture(scope="module")
def expected(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The outcome of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("untouched")
    process = server.start(folder, "train", *write_corpus(folder), *STEPS)
    assert process.wait() == 0, process.said
    return outcome(folder)


@pytest.mark.parametrize(
    ("number", "steps"),
    [
        (signal.SIGTERM, [5]),
        *(pytest.param(each, [5, 9], marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_a_signal_saves_the_run_and_explains_how_to_resume(
    server: Server, tmp_path: Path, expected: dict[str, object], number: int, steps: list[int]
) -> None:
    command = ["train", *write_corpus(tmp_path), *STEPS]
    process = server.start(tmp_path, *command)
    for step in steps:
        wait_until_reached(process, step)
        process.kill(number)
        assert process.wait() == 128 + number, process.said
        done = reached(tmp_path)
        assert step <= done < LAST
        assert f"interrupted at step {done}; everything is saved" in process.said
        assert "--resume" in process.said
        assert "Traceback" not in process.said
        assert "error" not in process.said
        assert (tmp_path / RUN / "training" / f"step-{done:08d}").is_dir()
        process = server.start(tmp_path, *command, "--resume")
    assert process.wait() == 0, process.said
    assert differences(outcome(tmp_path), expected) == []


@pytest.mark.slow
def test_signals_that_arrive_together_count_as_one(server: Server, tmp_path: Path, expected: dict[str, object]) -> None:
    command = ["train", *write_corpus(tmp_path), *STEPS]
    process = server.start(tmp_path, *command)
    wait_until_reached(process, 9)
    process.kill(signal.SIGSTOP)
    process.kill(signal.SIGTERM)  # both are pending until the process continues, so that they arrive together
    process.kill(signal.SIGINT)
    process.kill(signal.SIGCONT)
    assert process.wait() in (130, 143), process.said
    assert "Traceback" not in process.said
    assert f"interrupted at step {reached(tmp_path)}; everything is saved" in process.said
    process = server.start(tmp_path, *command, "--resume")
    assert process.wait() == 0, process.said
    assert differences(outcome(tmp_path), expected) == []


@pytest.mark.slow
def test_a_signal_during_the_last_validation_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Choosing the final parameters may take minutes, which an interrupted run does not wait for."""
    monkeypatch.chdir(tmp_path)
    command = ["train", *write_corpus(tmp_path), *SETTINGS, "train.max_steps=8"]
    runs = 0
    validate = Validator.run

    def interrupted(self: Validator, engine: object) -> Validation:
        nonlocal runs
        runs += 1
        os.kill(os.getpid(), signal.SIGTERM)
        return validate(self, engine)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Validator, "run", interrupted)
        assert main(command) == 128 + signal.SIGTERM
    assert runs == 1
    assert "interrupted at step 8; everything is saved" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    assert "the model of step 8" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m dragoman train`, without the tests' server. It is resumed in this process."""
    settings = [*SETTINGS, "train.log_every=1", "train.validate_every=8", "systems=[]"]
    command = [sys.executable, "-m", "dragoman", "train", *write_corpus(tmp_path), *settings]
    environment = process_environment()
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: reached(tmp_path) >= 10 or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert "everything is saved" in said.splitlines()[-1]
    assert (tmp_path / RUN / "curves.png").read_bytes().startswith(b"\x89PNG")
    done = reached(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--resume", "--out", RUN, f"train.max_steps={done + 1}"]) == 0
    finished = capsys.readouterr()
    assert f"Resuming at step {done}" in finished.err
    assert "BLEU" in finished.out
    assert [line["step"] for line in log_lines(tmp_path) if "loss" in line] == list(range(1, done + 2))


def test_handlers_are_restored_and_catch_one_signal_each() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with catch_signals(grace=0.0) as request:
        assert request.received is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.received == signal.SIGTERM
        with request.saving():
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_signal_that_the_process_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shells start background jobs like this, because Ctrl-C is for the foreground job."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with catch_signals() as request:
            os.kill(os.getpid(), signal.SIGINT)
            assert request.received is None
            os.kill(os.getpid(), signal.SIGTERM)
            assert request.received == signal.SIGTERM
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_training_in_a_thread_catches_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[Interruption] = []

    def train() -> None:
        with catch_signals() as request:
            assert signal.getsignal(signal.SIGTERM) is before
            seen.append(request)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert [request.received for request in seen] == [None]
