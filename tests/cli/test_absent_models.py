"""Every command that reads a model folder says what is wrong with a path that is not one, without an error number."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import main
from dragoman.cli.root import root_command

NAMES = {"model", "models", "teacher", "checkpoints", "run"}
"""The names of arguments for model folders."""

NO_FOLDERS = {("client",), ("align",), ("lexicon",)}
"""Commands whose `model` is a name on a server, or an option."""

ANSWERS = ("does not exist", "is not a model folder", "cannot read the settings none: No such file")


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the commands with an argument that is a model folder, with the words that call them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        elif (*path, name) not in NO_FOLDERS and any(each.name in NAMES for each in command.params):
            yield (*path, name), command


FOUND = dict(commands(root_command()))


def arguments(command: Any, folder: str) -> list[str]:
    """Return the arguments that the command requires: the folder as its model, and a file as anything else."""
    found = []
    for each in command.params:
        if each.name in NAMES:
            found.append(folder)
        elif each.required:
            value = {"to": "ctranslate2", "out": "new.svg", "output": "new.tsv"}.get(each.name, "text.txt")
            found += [value] if each.param_type_name == "argument" else [each.opts[0], value]
        elif "--input" in each.opts:
            found += [each.opts[0], "text.txt"]
    return found


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Errno" not in captured.err
    return captured.err


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text('{"sentence_good": "a", "sentence_bad": "b"}\n')
    Path("empty").mkdir()


def test_the_commands_are_found() -> None:
    assert {("evaluate", "labels"), ("translate",), ("inspect", "checkpoints"), ("serve",)} <= FOUND.keys()
    assert len(FOUND) > 25


@pytest.mark.parametrize("path", FOUND, ids=" ".join)
def test_a_folder_without_a_model_is_refused(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    if path == ("translate-shards",):
        pytest.importorskip("ray")
    absent = refusal([*path, *arguments(FOUND[path], "none")], capsys)
    assert "none" in absent
    assert any(answer in absent for answer in ANSWERS)
    assert "is not a model folder" in refusal([*path, *arguments(FOUND[path], "empty")], capsys)


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "none"],
        ["evaluate", "none", "--ensemble", "none"],
        ["evaluate", "labels", "none", "--test", "text.txt"],
        ["evaluate", "perplexity", "none", "--text", "text.txt"],
        ["translate", "none", "--system", "dictionary"],
        ["train", "task.kind=language_model", "data.train.text=text.txt", "data.vocabulary_of=none", "out=new"],
        ["train", "--source", "text.txt", "--target", "text.txt", "train.start=none", "--out", "new"],
    ],
    ids=" ".join,
)
def test_other_ways_to_name_a_folder(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "none does not exist" in refusal(words, capsys)
    assert not Path("new").exists()
