"""Corpora of JSON Lines: an object a line, of which two fields are the pair."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.corpora.lines import open_lines
from dragoman.data.corpora.pair import Pair

_MOST_NAMED = 10


def read_jsonl(path: Path, source_field: str, target_field: str) -> Iterator[Pair]:
    """The pairs of a file. A field is a key of the object, or a path of keys with dots between them.

    A null is an empty text, and so are both sides of a blank line. Raises DataError naming file and line for a line
    that is no JSON object, that lacks a field, or whose field is no text.
    """
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            yield Pair(number, "", "")
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: no JSON ({error}). Mend the line or take it out.") from None
        if not isinstance(entry, dict):
            raise DataError(f"{path}, line {number}: not a JSON object ({{…}}), but {type(entry).__name__}.")
        yield Pair(number, _text(entry, source_field, path, number), _text(entry, target_field, path, number))


def _text(entry: dict[str, Any], field: str, path: Path, line: int) -> str:
    value = entry.get(field, entry)
    if value is entry:
        for key in field.split("."):
            if not isinstance(value, dict) or key not in value:
                names = ", ".join(list(_names(entry))[:_MOST_NAMED])
                raise DataError(
                    f"{path}, line {line}: there is no field {field!r}; it has {names or 'none'}. Set source_field and "
                    "target_field, or mend the line."
                )
            value = value[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{path}, line {line}: the field {field!r} holds no text, but {type(value).__name__}.")
    return value


def _names(entry: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from _names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
