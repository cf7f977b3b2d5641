"""`command`: the decorator of the functions behind commands, which declares how a command is shown and interrupted."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

_ATTRIBUTE = "dragoman_command"


@dataclass(frozen=True, kw_only=True)
class CommandTraits:
    """What the command line knows of a command besides its arguments.

    examples: command lines for `--help`. usual: the options that `--help` describes, in this order; empty for all.
    takes_run_settings: whether the arguments are settings of training runs. files: the options for the files that the
    command reads, such as `--input`; empty if files are arguments. interrupted: the message after Ctrl-C.
    handles_signals: whether the command handles signals itself.
    """

    examples: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()
    takes_run_settings: bool = False
    files: str = ""
    interrupted: str = "interrupted: nothing was saved"
    handles_signals: bool = False


def command(*examples: str, usual: str = "", **traits: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for the function behind a command.

    Each parameter whose type is a dataclass becomes a group of options, one option per field, in the order of the
    parameters and fields; the names of options must be unique among all groups. usual: the options that `--help`
    describes, separated by spaces; the others are described by `--help-all`. examples, traits: of `CommandTraits`.
    """
    known = CommandTraits(examples=examples, usual=tuple(usual.split()), **traits)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        decorated = _with_groups(function)
        setattr(decorated, _ATTRIBUTE, known)
        return decorated

    return decorate


def traits_of(command: Any) -> CommandTraits:
    """Return the traits of a built command, or the defaults for a command from a function without the decorator."""
    traits: CommandTraits = getattr(getattr(command, "callback", None), _ATTRIBUTE, CommandTraits())
    return traits


def _with_groups(function: Callable[..., None]) -> Callable[..., None]:
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    if not groups:
        return function
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if parameter.name not in groups:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))
            continue
        options = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=options[field.name]
            )
            for field in fields(kind)
        ]

    @wraps(function)
    def grouped(**values: Any) -> None:
        grouped_values = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        function(**values, **grouped_values)

    grouped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    grouped.__annotations__ = {each.name: each.annotation for each in parameters}
    return grouped
