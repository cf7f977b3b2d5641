"""The text of `--help`: examples, the usual options, and the names of the others, which `--help-all` describes."""

import enum
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import typer

from dragoman.cli.command import traits_of

HELP_ALL = "--help-all"

_WIDEST = 100
_NAMES = 24
"""Columns of the names of options; a longer name has a line of its own."""
_PLACEHOLDERS = {"Path": "PATH", "str": "TEXT", "int": "N", "float": "NUMBER"}

Row = tuple[str, str]


def command_help(command: Any, path: str, everything: bool = False) -> str:
    """Return the help of a command. path: the words that call it. everything: whether to describe all options."""
    head, *rest = _paragraphs(command.help)
    usage = [_fill(f"Usage: {path} {_usage(command)}", "  ")]
    return _join(
        [_fill(head)], _examples(traits_of(command).examples), usage, map(_fill, rest), parameters(command, everything)
    )


def group_help(
    group: Any,
    path: str,
    sections: Iterable[tuple[str, Sequence[Row]]],
    examples: Sequence[str],
    everything: bool = False,
) -> str:
    """Return the help of a group of commands. sections: titles, and the names and summaries of commands."""
    head, *rest = _paragraphs(group.help)
    default = getattr(group, "default_command", None)
    called = "COMMAND [OPTIONS] [ARGUMENTS]" if default is None else f"[COMMAND] {_usage(default)}"
    usage = [_fill(f"Usage: {path} {called}", "  ")]
    listed = [line for title, rows in sections for line in (_heading(title), *_table(rows), "")]
    shown = parameters(
        group if default is None else default, everything, "" if default is None else f" of {default.name}"
    )
    return _join([_fill(head)], _examples(examples), usage, map(_fill, rest), listed[:-1], shown)


def parameters(command: Any, everything: bool, of: str = "") -> list[str]:
    """Return the lines of the arguments and options of a command. of: what follows the headings."""
    usual = traits_of(command).usual
    arguments = [each for each in command.params if each.param_type_name == "argument" and each.help]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    shown, others = options, []
    if usual and not everything:
        by_name = {name: each for each in options for name in each.opts}
        shown = [by_name[name] for name in usual]
        others = [max(each.opts, key=len) for each in options if each not in shown]
    rows = [(_label(each), _description(each)) for each in shown]
    if others:
        rows.append((HELP_ALL, "Describe all options."))
    rows.append(("-h, --help", "Show this help."))
    lines = []
    if arguments:
        lines += [
            _heading(f"Arguments{of}"),
            *_table([(_argument(each), _description(each)) for each in arguments]),
            "",
        ]
    lines += [_heading(f"Options{of}"), *_table(rows)]
    if others:
        lines += ["", _heading(f"More options{of} ({HELP_ALL} describes them)"), _fill("  " + " ".join(others), "  ")]
    return lines


def summary(text: str | None) -> str:
    """Return the first sentence of the help of a command."""
    head = _paragraphs(text)[0]
    return head.partition(". ")[0].removesuffix(".") + "." if head else ""


def _paragraphs(text: str | None) -> list[str]:
    return [" ".join(part.split()) for part in textwrap.dedent(text or "").strip().split("\n\n")]


def _join(*parts: Iterable[str]) -> str:
    return "\n\n".join(text for part in parts if (text := "\n".join(part)))


def _heading(title: str) -> str:
    return typer.style(f"{title}:", bold=True)


def _examples(examples: Sequence[str]) -> list[str]:
    if not examples:
        return []
    return [
        _heading("Examples" if len(examples) > 1 else "Example"),
        *(textwrap.indent(each, "  ") for each in examples),
    ]


def _usage(command: Any) -> str:
    """Return the options and arguments of a command, in short."""
    words = [f"{max(each.opts, key=len)} {placeholder(each)}" for each in command.params if _is_required_option(each)]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    return " ".join([*words, "[OPTIONS]", *map(_argument, arguments)])


def _is_required_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option" and parameter.required)


def _argument(parameter: Any) -> str:
    """Return an argument as in a usage line, such as `[TEXT]` or `FOLDER...`."""
    if parameter.metavar:
        return str(parameter.metavar)
    name = f"{parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}"
    return name if parameter.required else f"[{name}]"


def _label(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        return f"{names}/{option.secondary_opts[0]}"
    return f"{names} {placeholder(option)}".rstrip()


def placeholder(parameter: Any) -> str:
    """Return the placeholder for the value of a parameter, such as `PATH`; empty for a switch."""
    if parameter.metavar:
        return str(parameter.metavar)
    annotation = parameter.type_descriptor.annotation
    annotation = next(iter(get_args(annotation)), annotation)
    if annotation is bool:
        return ""
    if choices := _choices(parameter):
        return choices if len(choices) <= _NAMES else "NAME"
    return _PLACEHOLDERS.get(annotation.__name__, "TEXT")


def _choices(parameter: Any) -> str:
    """Return the values of an enumeration, separated by |; empty for another type."""
    annotation = parameter.type_descriptor.annotation
    annotation = next(iter(get_args(annotation)), annotation)
    if not issubclass(annotation, enum.Enum):
        return ""
    return "|".join(str(member.value) for member in annotation)


def _description(parameter: Any) -> str:
    """Return the help of a parameter, with its default unless the help states it."""
    text = parameter.help or ""
    if parameter.metavar is None and placeholder(parameter) == "NAME":
        text += f" One of {', '.join(_choices(parameter).split('|'))}."
    facts = ["required"] if _is_required_option(parameter) else []
    default = parameter.default
    if parameter.show_default and default not in (None, False, True, (), [], "") and "default" not in text:
        facts.append(f"default: {default.value if isinstance(default, enum.Enum) else default}")
    return f"{text} [{', '.join(facts)}]" if facts else text


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST) - 1


def _fill(text: str, following: str = "") -> str:
    return textwrap.fill(text, _width(), subsequent_indent=following, break_long_words=False, break_on_hyphens=False)


def _table(rows: Sequence[Row]) -> list[str]:
    """Return rows of names and their descriptions in two columns."""
    column = min(max(len(name) for name, _ in rows), _NAMES) + 4
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, _width() - column, break_long_words=False, break_on_hyphens=False) or [""]
        first = f"  {name}"
        if len(first) + 2 > column:
            lines.append(first)
            first = ""
        lines += [f"{first:<{column}}{wrapped[0]}".rstrip(), *(" " * column + each for each in wrapped[1:])]
    return lines
