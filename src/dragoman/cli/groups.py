"""`grouped`: a decorator for commands with groups of options, each a frozen dataclass with one option per field."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """Convert a function to a typer command with one option per field of each parameter whose type is a dataclass.

    The options have the order of the parameters and fields. Names must be unique across all groups.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
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
    def command(**values: Any) -> None:
        grouped_values = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        function(**values, **grouped_values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command
