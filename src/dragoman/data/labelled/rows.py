"""`Row`, an example with its line, and reading of lines in a given encoding."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.files.lines import has_broken_utf8, open_lines
from dragoman.data.labelled.corpus import Encoding

Line = tuple[int, str]
"""A line and its number, counted from 1."""

_CODECS = {"latin-1": "latin-1", "windows-1252": "cp1252"}


@dataclass(frozen=True)
class Row:
    """An example as read from a file. line: line at which it starts. texts, label, id: as in `LabelledText`."""

    line: int
    texts: tuple[str, ...]
    label: str | None = None
    id: str | None = None


def read_lines(path: Path, encoding: Encoding) -> Iterator[Line]:
    r"""Yield the numbered lines of a file. Lines end only at \n; a preceding \r is removed.

    Raises DataError with file and line if a line cannot be decoded, and as `open_lines` does.
    """
    for number, line in enumerate(open_lines(path, "any", check_encoding=False), start=1):
        if encoding != "utf-8":
            yield number, _decode(line, encoding, f"{path}, line {number}")
        elif has_broken_utf8(line):
            raise DataError(
                f"{path}, line {number}: broken UTF-8. Set `encoding`, for example to latin-1, or convert the file."
            )
        else:
            yield number, line


def check_unicode(text: str, location: str) -> str:
    r"""Return the text. Raises DataError if an escape such as \ud800 in JSON is half of a character."""
    if has_broken_utf8(text):
        raise DataError(f"{location}: an unpaired surrogate (such as \\ud800) in a string. Fix or remove the line.")
    return text


def _decode(line: str, encoding: Encoding, location: str) -> str:
    try:
        return line.encode("utf-8", "surrogateescape").decode(_CODECS[encoding])
    except UnicodeDecodeError as error:
        raise DataError(f"{location}: not valid {encoding} (byte {error.start + 1}). Set another `encoding`.") from None
