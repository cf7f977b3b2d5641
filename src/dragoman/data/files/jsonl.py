"""Files in JSON Lines format, with one object per line, or in a JSON array of objects."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.files.lines import LONGEST_LINE, open_lines, read_text

_MAX_LISTED_FIELDS = 10
_WHITESPACE = " \t\r\n"
_SPACE = re.compile(f"[{_WHITESPACE}]*")


def read_fields(path: Path, fields: Sequence[str], settings: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line and the texts of its fields. In an array, the line at which each object starts.

    fields: keys of the object, or paths of keys separated by dots. A null and every field of a blank line are empty
    texts. settings: names of the settings that select the fields, for messages. Raises DataError with file and line if
    a line is not a JSON object, lacks a field, or has a field that is not text.
    """
    for number, entry in read_objects(path):
        if entry is None:
            yield number, [""] * len(fields)
        else:
            yield number, [field_text(entry, field, f"{path}, line {number}", settings) for field in fields]


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield each object of a file with its line; None for a blank line. A file of one array yields its elements.

    Memory does not grow with the file. Raises DataError with file and line if a line or an element is not an object.
    """
    pieces = read_text(path, "json")
    start = ""
    for piece in pieces:
        start += piece
        if start.strip(_WHITESPACE):
            break
    if start.lstrip(_WHITESPACE).startswith("["):
        yield from _ArrayReader(path, start, pieces).read()
        return
    for number, line in enumerate(open_lines(path, "json"), start=1):
        yield number, read_object(line, f"{path}, line {number}") if line.strip() else None


class _ArrayReader:
    """Reads the objects of an array one by one. Raises DataError with file and line if the array is not valid."""

    def __init__(self, path: Path, start: str, pieces: Iterator[str]) -> None:
        """start: the text of the file up to the bracket or beyond. pieces: the rest of the text."""
        self._path, self._buffer, self._pieces = path, start, pieces
        self._position, self._line = 0, 1
        self._decoder = json.JSONDecoder()

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the objects, each with the line at which it starts."""
        self._advance(self._buffer.index("[") + 1)
        if self._next_character() == "]":
            self._finish()
            return
        while True:
            line, value = self._line, self._decode()
            yield line, _check_object(value, self._location)
            character = self._next_character()
            if character == "]":
                self._finish()
                return
            if character != ",":
                raise self._invalid("there is no comma between two elements")
            self._advance(self._position + 1)
            self._next_character()

    @property
    def _location(self) -> str:
        return f"{self._path}, line {self._line}"

    def _invalid(self, reason: str) -> DataError:
        return DataError(f"{self._location}: not valid JSON ({reason}). Fix or remove the element.")

    def _advance(self, position: int) -> None:
        self._line += self._buffer.count("\n", self._position, position)
        self._position = position

    def _extend(self) -> bool:
        """Drop the text before the position, and at least double the rest. Return False at the end of the file.

        Because the buffer doubles, decoding an element that exceeds the buffer takes linear time.
        """
        rest = self._buffer[self._position :]
        more: list[str] = []
        size = 0
        while size <= len(rest) and (piece := next(self._pieces, None)) is not None:
            more.append(piece)
            size += len(piece)
        self._buffer, self._position = rest + "".join(more), 0
        return size > 0

    def _next_character(self) -> str:
        """Move to the next character that is not whitespace, and return the character."""
        while True:
            match = _SPACE.match(self._buffer, self._position)
            assert match is not None
            self._advance(match.end())
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._extend():
                raise DataError(f"{self._location}: the JSON array has no end. Is the file truncated?")

    def _decode(self) -> Any:
        """Return the element at the position, and move to its end."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._position)
            except RecursionError as error:
                raise self._invalid(str(error)) from None
            except ValueError as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                if len(self._buffer) - self._position > LONGEST_LINE or not self._extend():
                    raise self._invalid(reason) from None
                continue
            self._advance(end)
            return value

    def _finish(self) -> None:
        self._advance(self._position + 1)
        if self._buffer[self._position :].strip(_WHITESPACE) or any(piece.strip(_WHITESPACE) for piece in self._pieces):
            raise DataError(f"{self._location}: there is more text after the JSON array. Remove the text.")


def read_object(line: str, location: str, number: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Parse a non-blank line. Raises DataError if it is not a JSON object.

    location: file and line, for messages. number: function that converts a number as written; by default, numbers
    become int or float.
    """
    try:
        entry = json.loads(line, parse_int=number, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError) as error:
        hint = ""
        if line.strip() == "{":
            hint = " Each object must be on one line: `jq -c .` writes objects in this form."
        raise DataError(f"{location}: not valid JSON ({error}). Fix or remove the line.{hint}") from None
    return _check_object(entry, location)


def _check_object(entry: Any, location: str) -> dict[str, Any]:
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
                names = ", ".join(list(field_names(entry))[:_MAX_LISTED_FIELDS])
                raise DataError(
                    f"{location}: there is no field {field!r}; the fields are {names or 'none'}. Set {settings}, or "
                    "fix the line."
                )
            value = value[key]
    return value


def field_names(entry: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys of an object; those of nested objects as paths with dots."""
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from field_names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
