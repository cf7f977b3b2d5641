"""Word vectors as text, as word2vec, GloVe and fastText write them: a word a line, then its numbers."""

from collections.abc import Iterator, Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.data.readers import open_lines


def vector_width(path: Path) -> int:
    """The numbers in a vector of the file, from its first line or two. Raises DataError where these are no vectors."""
    width, _ = _begin(path)
    return width


def read_word_vectors(path: Path, wanted: Set[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors of those of the `wanted` words that the file has; of a repeated word, the first.

    path: plain, .gz, .xz or .zst; a first line with the number of words and of dimensions may be there or not. Words
    may hold blanks, and bytes that are no UTF-8, which no wanted word equals. Raises DataError naming file and line
    where a line has another number of values, or a wanted word has one that is no finite number.
    """
    width, header = _begin(path)
    found: dict[str, NDArray[np.float32]] = {}
    for number, line in _lines(path):
        if number == 1 and header:
            continue
        word, *values = line.rsplit(" ", width)
        if len(values) != width or not word:
            raise DataError(
                f"{path}, line {number}: not a word and {width} numbers, as the lines before: {line[:60]!r}."
            )
        if word in wanted and word not in found:
            vector = _parsed(values)
            if vector is None:
                raise DataError(f"{path}, line {number}: the vector of {word!r} holds what is no finite number.")
            found[word] = vector
    return found


def _begin(path: Path) -> tuple[int, bool]:
    """The width, and whether the first line is a header."""
    lines = _lines(path)
    _, first = next(lines, (1, ""))
    fields = first.split(" ")
    if len(fields) == 2 and all(field.isdecimal() for field in fields):
        width, header = int(fields[1]), True
    else:
        # A word may hold blanks: the vector is what can be read as numbers from the end of the line, but for the word.
        width, header = len(fields) - 1, False
        while width > 0 and _parsed(fields[-width:]) is None:
            width -= 1
    if width < 1:
        raise DataError(
            f"{path}, line 1: neither a word and its numbers nor the numbers of words and dimensions: {first[:60]!r}."
        )
    return width, header


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without blanks at their ends; blank ones are skipped."""
    for number, line in enumerate(open_lines(path), start=1):
        if stripped := line.rstrip(" "):
            yield number, stripped


def _parsed(values: list[str]) -> NDArray[np.float32] | None:
    try:
        vector = np.array(values, dtype=np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None
