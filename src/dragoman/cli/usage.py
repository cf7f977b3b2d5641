"""Advice for command lines that typer rejects."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.synonyms import find_synonyms
from dragoman.cli.command import traits_of

WRONG_USAGE = 2
"""Exit code of typer for an invalid command line."""

_HELP = ("-h", "--help", "help")
_OTHER_NAMES = {
    "--beam": "--beam-size --beam_size --num-beams --num_beams --beams",
    "--batch-size": "--batch_size --batch",
    "--input": "--src --source --text --file",
    "--length-penalty": "--lenpen --length_penalty --normalize --alpha",
    "--nbest": "--n-best --n_best --n",
    "--out": "--output-dir --output_dir --output --save",
    "--output": "--out --output-file --output_file --tgt",
    "--quantization": "--quantisation --precision --dtype --compute-type",
    "--reference": "--ref --refs --references --target --tgt",
    "--source": "--src --input",
    "--target": "--tgt --trg --reference",
    "--to": "--format --type",
    "--tokenizer": "--target-language --target_language --tokenize --tokeniser --tok",
}
"""Names that other programs have for options."""


_PATHS = (Path, Path | None, list[Path], list[Path] | None)
"""The types of options that expect paths."""


def move_help_to_end(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a help option before a command moved to the end: `-h translate`, `help translate`."""
    if len(arguments) > 1 and arguments[0] in _HELP:
        return [*arguments[1:], "--help"]
    return ["--help"] if list(arguments) == ["help"] else list(arguments)


def expand_home(arguments: Sequence[str]) -> list[str]:
    """Replace `~` in arguments such as `--out=~/runs/a`, because shells expand it only at the beginning of a word."""
    return [
        re.sub(r"^(--[\w-]+=)(~/.*)", lambda found: found[1] + str(Path(found[2]).expanduser()), each, flags=re.DOTALL)
        for each in arguments
    ]


def reject_empty_paths(arguments: Sequence[str], command: Any) -> None:
    """Raise ConfigError for an option that expects a path and is empty, as in `--out "$OUT"` with an unset variable.

    The empty path would be the current folder. command: the command of the whole application.
    """
    command, rest = find_command(arguments, command)
    options = (each for each in command.params if each.param_type_name == "option")
    paths = {name for each in options if each.type_descriptor.annotation in _PATHS for name in each.opts}
    for option, value in pairwise([*rest, "-"]):
        if (option in paths and not value) or (option.endswith("=") and option[:-1] in paths):
            raise ConfigError(f"{option.removesuffix('=')} has no value: write a path, or leave out the option")


def find_command(arguments: Sequence[str], command: Any) -> tuple[Any, list[str]]:
    """Return the command that the arguments name, and the arguments after its name.

    command: the command of the whole application. A group without a default command is returned if none of its commands
    is named.
    """
    rest = list(arguments)
    while hasattr(command, "commands"):
        if rest and rest[0] in command.commands:
            command = command.commands[rest.pop(0)]
        elif (name := getattr(command, "default", None)) is not None:
            command = command.commands[name]
        else:
            break
    return command, rest


def usage_hint(arguments: Sequence[str], command: Any) -> str | None:
    """Return advice for the most common causes of an invalid command line, or None.

    command: the command of the whole application.
    """
    if not arguments or arguments[0] not in command.commands:
        return None
    called, _ = find_command(arguments, command)
    traits = traits_of(called)
    options = {option for parameter in called.params for option in parameter.opts}
    if traits.takes_run_settings:
        for name, value in _unknown_options(arguments[1:], options):
            if settings := find_synonyms(name):
                shown = " or ".join(f"{setting}={value or 'VALUE'}" for setting in settings)
                return f"{name} is not an option but a setting, which is written without dashes: {shown}"
    for name, _ in _unknown_options(arguments[1:], options):
        for option, others in _OTHER_NAMES.items():
            if option in options and name in others.split():
                return f"{name} is called {option} here"
    if traits.files:
        for previous, argument in pairwise(arguments[1:]):
            if not previous.startswith("-") and Path(argument).is_file():
                return f"the only argument without an option is the model: pass files as {traits.files}"
    return None


def _unknown_options(arguments: Sequence[str], options: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the options that the command does not have, each with its value or an empty string."""
    for number, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if argument.startswith("--") and name not in options:
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            yield name, value or ("" if following.startswith("-") or "=" in following else following)
