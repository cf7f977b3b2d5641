"""The screens of "Watch a training run", by benchmarks/training_screens.py, have the form of the output of a run."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT
from training_runs import SETTINGS, process_environment, write_corpus

from dragoman.cli.main import main
from dragoman.tasks.translation.validation import Validation, Validator

PAGE = ROOT / "docs" / "how-to" / "training" / "watch.md"
SPINNER = "[⠁-⣿] "
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LIVE = re.compile(f"^{SPINNER}")


def shape(line: str) -> str:
    """Return a line with placeholders for numbers, paths and the precision, and without the progress bar, which is only
    shown if there is space for it.
    """
    line = re.sub(r"[━╸╺]+", "", LIVE.sub("", line.strip()))
    line = re.sub(r"\S*/[^\s,]+|\S+\.(gz|a|b)\b", "PATH", line)
    line = re.sub(r"bfloat16|float32|float16", "PRECISION", line)
    line = re.sub(r"\b(source|target)\b", "SIDE", re.sub(r"(--out )\S+", r"\1PATH", line))
    line = re.sub(r"\s+", " ", re.sub(r"\d[\d,.:]*\d|\d|…", "0", line))
    return re.sub(r"lines? 0(, 0)*", "lines 0", line)


def screens() -> list[str]:
    """Return the lines of all screens of the page."""
    blocks = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def corpus_with_faults(folder: Path) -> list[str]:
    """Write a corpus in which cleaning finds a pair of unequal lengths, a duplicate and an escaped character."""
    options = write_corpus(folder)
    for side, unequal in (("a", "dog"), ("b", " ".join(["god"] * 40))):
        path = folder / f"train.{side}"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines, lines[0], unequal, "cat &amp; dog"]) + "\n")
    return options


def test_messages_of_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["train", *corpus_with_faults(tmp_path), *SETTINGS, "train.max_steps=30", "train.threads=1"]
    validate, runs = Validator.run, 0

    def interrupted(self: Validator, engine: object) -> Validation:
        nonlocal runs
        runs += 1
        if runs == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return validate(self, engine)  # type: ignore[arg-type]

    monkeypatch.setattr(Validator, "run", interrupted)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    try:
        assert main(command) == 130
    finally:
        signal.signal(signal.SIGINT, handler)
    shown = {shape(line) for line in capsys.readouterr().err.splitlines()}
    shown |= {line.removesuffix(" · best so far") for line in shown}
    expected = [line for line in screens() if not LIVE.match(line)]
    assert len(expected) >= 4
    assert [line for line in expected if shape(line) not in shown] == []


def terminal_output(command: list[str], folder: Path, columns: int) -> Iterator[str]:
    """Run a command in a terminal, and yield the lines that were visible at some time."""
    main_end, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**process_environment(), "TERM": "xterm-256color"}
    arguments = [sys.executable, "-m", "dragoman", *command]
    with subprocess.Popen(arguments, cwd=folder, env=environment, stdin=terminal, stdout=terminal, stderr=terminal):
        os.close(terminal)
        output = b""
        while True:
            try:
                block = os.read(main_end, 1 << 16)
            except OSError:  # the end of a terminal on Linux
                break
            if not block:
                break
            output += block
    os.close(main_end)
    for line in re.split(r"[\r\n]+", output.decode(errors="replace")):
        if text := ANSI.sub("", line).strip():
            yield text


@pytest.mark.slow
def test_status_lines_of_a_training(tmp_path: Path) -> None:
    settings = ["train.max_steps=600", "train.validate_every=300", "train.average.count=0"]
    options = write_corpus(tmp_path, 2000)
    for side in "ab":
        path = tmp_path / f"valid.{side}"
        path.write_text(path.read_text() * 1000)
    shown = {shape(line) for line in terminal_output(["train", *options, *SETTINGS, *settings], tmp_path, 110)}
    expected = [line for line in screens() if LIVE.match(line) and "Learning" not in line]
    assert expected
    assert [line for line in expected if shape(line) not in shown] == []
