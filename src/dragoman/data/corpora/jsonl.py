"""Corpora in JSON Lines format, with one object per line, from which selected fields are read."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.lines import open_lines

_MAX_LISTED_FIELDS = 10


def read_jsonl(path: Path, source_field: str, target_field: str) -> Iterator[Pair]:
    """Yield the pairs of a file. A blank line yields two empty sides. Raises DataError as `read_fields` does."""
    for number, (source, target) in read_fields(path, (source_field, target_field), "source_field and target_field"):
        yield Pair(number, source, target)


def read_fields(path: Path, fields: Sequence[str], settings: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line and the texts of its fields.

    fields: keys of the object, or paths of keys separated by dots. A null and every field of a blank line are empty
    texts. settings: names of the settings that select the fields, for messages. Raises DataError with file and line if
    a line is not a JSON object, lacks a field, or has a field that is not text.
    """
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            yield number, [""] * len(fields)
            continue
        entry = read_object(line, f"{path}, line {number}")
        yield number, [field_text(entry, field, f"{path}, line {number}", settings) for field in fields]


def read_object(line: str, location: str, number: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Parse a non-blank line. Raises DataError if it is not a JSON object.

    location: file and line, for messages. number: function that converts a number as written; by default, numbers
    become int or float.
    """
    try:
        entry = json.loads(line, parse_int=number, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: not valid JSON ({error}). Fix or remove the line.") from None
    if not isinstance(entry, dict):
        raise DataError(f"{location}: not a JSON object ({{…}}), but {type(entry).__name__}.")
    return entry


def field_text(entry: dict[str, Any], field: str, location: str, settings: str) -> str:
    """Return the text of a field, as in `read_fields`. Raises DataError if the field is missing or not text."""
    value = field_value(entry, field, location, settings)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{location}: the field {field!r} is not text, but {type(value).__name__}.")
    return value


def field_value(entry: dict[str, Any], field: str, location: str, settings: str) -> Any:
    """Return the value of a field, as in `read_fields`. Raises DataError if the field is missing."""
    value = entry.get(field, entry)
    if value is entry:
        for key in field.split("."):
            if not isinstance(value, dict) or key not in value:
                names = ", ".join(list(_field_names(entry))[:_MAX_LISTED_FIELDS])
                raise DataError(
                    f"{location}: there is no field {field!r}; the fields are {names or 'none'}. Set {settings}, or "
                    "fix the line."
                )
            value = value[key]
    return value


def _field_names(entry: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from _field_names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
