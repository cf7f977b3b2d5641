"""The help of every command: examples that can be parsed, the usual options, at most 60 lines in a narrow terminal."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.cli.command import traits_of
from dragoman.cli.core_commands import COMMANDS
from dragoman.cli.help import HELP_ALL, summary
from dragoman.cli.main import main
from dragoman.cli.root import root_command
from dragoman.cli.usage import find_command

LINES = 60


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that is not a group, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = list(commands(root_command()))
GROUPS = [(), *sorted({path[:-1] for path, _ in ALL if len(path) > 1})]
IDS = [" ".join(path) for path, _ in ALL]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("path", "command"), ALL, ids=IDS)
def test_help_starts_with_examples_and_is_short(
    path: tuple[str, ...], command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, *path, "--help")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= 80
    examples = traits_of(command).examples
    assert 1 <= len(examples) <= 2
    first = next(number for number, line in enumerate(lines) if line in ("Example:", "Examples:"))
    assert first <= 4, "after one short paragraph"
    assert lines[first + 1] == f"  {examples[0].partition(chr(10))[0]}"


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: " ".join(path) or "dragoman")
def test_the_help_of_groups_is_short(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, *path, "--help")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= 80
    group = find_command([*path, "--help"], root_command())[0] if not path else root_command().commands[path[0]]
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in group.commands)


@pytest.mark.parametrize(("path", "command"), ALL, ids=IDS)
def test_all_options_are_described_on_request(
    path: tuple[str, ...], command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    usual, everything = shown(capsys, *path, "--help"), shown(capsys, *path, HELP_ALL)
    options = {max(each.opts, key=len) for each in command.params if each.param_type_name == "option"}
    described = {word.strip(",").partition("/")[0] for line in everything for word in line[:30].split()}
    assert options <= described
    assert options <= {word.strip(",").partition("/")[0] for line in usual for word in line.split()}
    assert not any(line.startswith("More options") for line in everything)


@pytest.mark.parametrize(("path", "command"), ALL, ids=IDS)
def test_examples_can_be_parsed(path: tuple[str, ...], command: Any) -> None:
    for example in traits_of(command).examples:
        words = shlex.split(example.replace("\\\n", " "), comments=True)
        words = words[words.index("dragoman") + 1 :]
        end = next((number for number, word in enumerate(words) if word in ("|", "<", ">")), len(words))
        found, rest = find_command(words[:end], root_command())
        assert found is command
        with found.make_context(" ".join(path), rest) as context:
            assert context.params


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_has_the_first_sentences_of_their_help(name: str) -> None:
    assert COMMANDS[name].text == summary(root_command().commands[name].help)


def test_help_may_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    usual = shown(capsys, "translate", "--help")
    assert shown(capsys, "-h", "translate") == shown(capsys, "help", "translate") == usual


def test_an_option_value_is_no_request_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--", HELP_ALL]) == 2
    assert HELP_ALL in capsys.readouterr().err
