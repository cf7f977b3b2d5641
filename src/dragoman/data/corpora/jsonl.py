"""Corpora of JSON Lines: an object a line, of which some fields are taken."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.lines import open_lines

_MOST_NAMED = 10


def read_jsonl(path: Path, source_field: str, target_field: str) -> Iterator[Pair]:
    """The pairs of a file; both sides of a blank line are empty. Raises DataError as `read_fields` does."""
    for number, (source, target) in read_fields(path, (source_field, target_field), "source_field and target_field"):
        yield Pair(number, source, target)


def read_fields(path: Path, fields: Sequence[str], settings: str) -> Iterator[tuple[int, list[str]]]:
    """The number of each line and the texts of its fields. A field is a key of the object, or a path of keys with dots.

    A null is an empty text, and so is every field of a blank line. settings: what names the fields, for messages.
    Raises DataError naming file and line for a line that is no JSON object, that lacks a field, or whose field is no
    text.
    """
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            yield number, [""] * len(fields)
            continue
        entry = read_object(line, f"{path}, line {number}")
        yield number, [field_text(entry, field, f"{path}, line {number}", settings) for field in fields]


def read_object(line: str, place: str) -> dict[str, Any]:
    """Of a line that is not blank. place: the file and the line, for messages. Raises DataError for another thing."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: no JSON ({error}). Mend the line or take it out.") from None
    if not isinstance(entry, dict):
        raise DataError(f"{place}: not a JSON object ({{…}}), but {type(entry).__name__}.")
    return entry


def field_text(entry: dict[str, Any], field: str, place: str, settings: str) -> str:
    """The text of a field, of which `read_fields` says what it may be. Raises DataError where it is none."""
    value = entry.get(field, entry)
    if value is entry:
        for key in field.split("."):
            if not isinstance(value, dict) or key not in value:
                names = ", ".join(list(_names(entry))[:_MOST_NAMED])
                raise DataError(
                    f"{place}: there is no field {field!r}; it has {names or 'none'}. Set {settings}, or mend the line."
                )
            value = value[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{place}: the field {field!r} holds no text, but {type(value).__name__}.")
    return value


def _names(entry: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from _names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
