"""`dragoman translate --prefix` reads both files once, in parallel; unequal lengths are reported and leave no file."""

import os
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tiny_model import write_tiny_model

from dragoman import Translator
from dragoman.cli.main import main

LINES, WINDOW = 13, 4


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a command that translates `in`, three windows and one line."""
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 2)
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "model")
    Path("in").write_text("".join(f"a dog {number}\n" for number in range(LINES)))
    return ["translate", "model", "--batch-size", str(WINDOW // 2), "--beam", "1", "--prefix"]


def test_input_and_prefixes_are_read_once_and_can_be_pipes(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("prefix").write_text("Ein\n\n" * (LINES // 2) + "Ein\n")
    opened = Counter[str]()
    original = Path.open

    def counting(path: Path, *arguments: Any, **settings: Any) -> Any:
        opened[path.name] += 1
        return original(path, *arguments, **settings)

    monkeypatch.setattr(Path, "open", counting)
    assert main([*command, "prefix", "-i", "in"]) == 0
    out = capfd.readouterr().out
    assert (opened["in"], opened["prefix"]) == (2, 1)  # a regular input is checked before the model is loaded
    lines = out.split("\n")
    assert len(lines) == LINES + 1 and all(line.startswith("Ein") for line in lines[:LINES:2])
    assert lines[1] == Translator.load("model", "cpu").translate(["a dog 1"], beam=1)[0]

    for name in ("in", "prefix"):
        os.mkfifo(f"{name}.pipe")
        content = Path(name).read_bytes()
        Thread(target=Path(f"{name}.pipe").write_bytes, args=[content], daemon=True).start()
    assert main([*command, "prefix.pipe", "-i", "in.pipe"]) == 0
    assert capfd.readouterr().out == out


@pytest.mark.parametrize("prefixes", [8, 9, 12, 20])
def test_a_late_mismatch_leaves_no_file(command: list[str], prefixes: int, capfd: pytest.CaptureFixture[str]) -> None:
    Path("prefix").write_text("Ein\n" * prefixes)
    assert main([*command, "prefix", "-i", "in", "-o", "out"]) == 1
    told = " ".join(capfd.readouterr().err.split())
    assert f"in has {LINES} line(s) and prefix has {prefixes}: line n of --prefix" in told
    assert not list(Path().glob("*out*"))
    assert main([*command, "prefix", "-i", "in"]) == 1
    assert capfd.readouterr().out.count("\n") == min(prefixes, LINES) // WINDOW * WINDOW
