"""Ctrl-C ends every command, with exit code 130 and one line, at any time."""

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_model import tiny_config, write_tiny_model
from training_runs import SETTINGS, process_environment, write_corpus
from waiting import PATIENCE, wait_until

from dragoman.base.cancellation import Cancelled, active_cancellation, check_cancelled
from dragoman.base.files import atomic_folder
from dragoman.base.interruption import EXIT_CODE, InterruptWatch, interruptible
from dragoman.engines.native.model import NativeModel
from dragoman.inference.translation.translator import Translator

SECONDS = 2.5
"""Processor time for a reaction. On a quiet machine, a reaction takes at most one second."""


def receive_interrupts() -> None:
    """Handle SIGINT, which the children of a background job of a shell ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def python_handler() -> Iterator[None]:
    """Handle SIGINT as Python does, and call the finalisers of earlier tests, which could swallow it."""
    gc.collect()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def interrupted(command: list[str], folder: Path, moment: Callable[[int], object], presses: int = 1) -> tuple[int, str]:
    """Run a command, send SIGINT, and return exit code and stderr. moment: waits, given the process."""
    environment = process_environment()
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=receive_interrupts,
    ) as process:
        moment(process.pid)
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def check(code: int, said: str) -> None:
    assert code == EXIT_CODE, said
    assert "Traceback" not in said
    assert "interrupted" in said.splitlines()[-1]


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    return write_corpus(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_any_time_of_a_training(tmp_path: Path, corpus: list[str], seed: int) -> None:
    """While libraries are imported, before the first update, in updates and in validations."""
    draw = random.Random(seed)
    command = ["train", *corpus, *SETTINGS, "train.max_steps=100000000"]
    delay = draw.uniform(0.15, 6)
    check(*interrupted(command, tmp_path, lambda process: time.sleep(delay), presses=draw.choice([1, 2])))


def test_a_command_that_has_just_started(tmp_path: Path, corpus: list[str]) -> None:
    """It is interrupted while it imports torch."""

    def importing(process: int) -> None:
        wait_until(lambda: "/torch/lib/" in Path(f"/proc/{process}/maps").read_text())

    code, said = interrupted(["train", *corpus, *SETTINGS], tmp_path, importing)
    check(code, said)
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "run" / "config.yaml").exists()


def press_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_the_first_press_raises_and_cancels() -> None:
    handler = signal.getsignal(signal.SIGINT)
    watch, cancellation = InterruptWatch("interrupted"), None

    def command() -> None:
        nonlocal cancellation
        with watch:
            cancellation = active_cancellation()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        command()
    assert cancellation is not None
    assert watch.message == "interrupted"
    assert cancellation.is_cancelled
    assert signal.getsignal(signal.SIGINT) is handler
    assert active_cancellation() is None


def test_a_process_that_ignores_the_signal_is_not_watched() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptWatch("interrupted"):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            check_cancelled()
    finally:
        signal.signal(signal.SIGINT, before)


STUBBORN = """
import hashlib, sys, time
from pathlib import Path
from dragoman.base.files import atomic_folder
from dragoman.base.interruption import InterruptWatch
with InterruptWatch("interrupted: nothing was saved"):
    with atomic_folder(Path("out")) as folder:
        (folder / "half").touch()
        if sys.argv[1] == "compiled":
            print("ready", flush=True)
            hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000_000)  # C code that continues after a signal
        else:
            try:
                print("ready", flush=True)
                time.sleep(1000)
            except:  # a library that swallows the exception
                time.sleep(1000)
"""


@pytest.mark.parametrize("kind", ["compiled", "swallowed"])
def test_a_process_that_does_not_react_is_ended_without_leftovers(kind: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, kind],
        cwd=tmp_path,
        env=process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=receive_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # until the call that follows has begun
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    check(process.returncode, said)
    assert said == "interrupted: nothing was saved\n"
    assert list(tmp_path.iterdir()) == []


def test_a_translation_from_python_ends_inside_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the command line, the native engine is interrupted in the middle of a long call.

    The waiting texts are not encoded, which would take several seconds.
    """
    model = tmp_path / "model"
    write_tiny_model(model, config=tiny_config(width=64, encoder={"layers": 12, "heads": 4, "feedforward": 256}))
    translator = Translator.load(model, engine="native", precision="float32", threads=1)
    texts = ["a dog runs " * 20] * 1500
    call, begun = NativeModel.translate, []

    def interrupted_call(model: NativeModel, *arguments: Any) -> Any:
        begun.append((time.process_time(), press_after(0.5)))
        return call(model, *arguments)

    monkeypatch.setattr(NativeModel, "translate", interrupted_call)
    with pytest.raises(KeyboardInterrupt):
        translator.translate(texts, beam=8, divide=False, search=["search.minimum_length=100"])
    [(started, timer)] = begun
    timer.join()
    assert time.process_time() - started < 0.5 + SECONDS


def test_only_the_main_thread_is_interruptible() -> None:
    seen: list[object] = []

    def run() -> None:
        with interruptible() as cancellation:
            seen.append(cancellation)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [None]
    with interruptible() as cancellation:
        assert cancellation is not None
        cancellation.cancel()
        with pytest.raises(Cancelled), cancellation.active():
            check_cancelled()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, Cancelled])
def test_an_interrupted_write_leaves_nothing(failure: type[BaseException], tmp_path: Path) -> None:
    def write() -> None:
        with atomic_folder(tmp_path / "out") as folder:
            (folder / "half").touch()
            raise failure

    with pytest.raises(failure):
        write()
    assert list(tmp_path.iterdir()) == []
