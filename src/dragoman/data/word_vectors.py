"""Word vectors as text, as word2vec, GloVe and fastText write them: a word a line, then its numbers."""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.corpora.lines import has_broken_utf8, open_lines


class _Form(NamedTuple):
    """words: what the first line says of their number, None where there is no such line; width: numbers a vector."""

    words: int | None
    width: int


def vector_width(path: Path) -> int:
    """The numbers in a vector of the file, from its first lines. Raises DataError where these are no vectors."""
    return _begin(path).width


def read_word_vectors(path: Path, wanted: Set[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors of those of the `wanted` words that the file has; of a repeated word, the first.

    path: plain, .gz, .xz or .zst; a first line with the number of words and of dimensions may be there or not. Blanks
    or tabs stand between numbers. Words may hold blanks, and bytes that are no UTF-8, which no wanted word equals. Of
    all other words the numbers are only counted: memory grows with the wanted words, not with the file. Raises
    DataError naming file and line where a line has another number of values, or a wanted word has one that is no
    finite number; warns where the first line promises another number of words.
    """
    form = _begin(path)
    found: dict[str, NDArray[np.float32]] = {}
    words = 0
    for number, line in _lines(path):
        if number == 1 and form.words is not None:
            continue
        words += 1
        word, _, numbers = line.partition(" ")
        if line.count(" ") != form.width:
            word, *split = line.rsplit(" ", form.width)
            _check(path, number, line, len(split) == form.width and word != "", form.width)
            numbers = " ".join(split)
        if word in wanted and word not in found:
            vector = _parsed(numbers.split(" "))
            if vector is None:
                raise DataError(
                    f"{path}, line {number}: the vector of {word!r} holds what is no finite number; mend the line or "
                    "take it out."
                )
            found[word] = vector
    if form.words not in (None, words):
        warn(f"{path}: its first line promises {form.words:,} words, but it has {words:,}. Is the file complete?")
    return found


def _begin(path: Path) -> _Form:
    """The form of the file, from its first lines."""
    lines = _lines(path)
    number, line = next(lines, (0, ""))
    if not number:
        raise DataError(f"{path} is empty; word vectors have a line a word: the word, then its numbers.")
    fields = line.split(" ")
    words = None
    if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
        words, width = map(int, fields)
        number, line = next(lines, (0, ""))
        if not number:
            raise DataError(f"{path} has no line but the first, the numbers of words and dimensions; fetch it again.")
        split = line.rsplit(" ", width)[1:] if width else []
        _check(path, number, line, bool(width) and len(split) == width and all(map(_is_number, split)), width)
    else:
        # A word may hold blanks: the vector is what can be read as numbers from the end of the line, but for the word.
        width = 0
        while width < len(fields) - 1 and _is_number(fields[-1 - width]):
            width += 1
        _check(path, number, line, width > 0, width)
    return _Form(words, width)


def _check(path: Path, number: int, line: str, fits: bool, width: int) -> None:
    if fits:
        return
    start = line[:60]
    binary = has_broken_utf8(start) or any(character < " " for character in start)
    raise DataError(
        f"{path}, line {number}: not a word and {f'{width} numbers' if width else 'its numbers'}: {start!r}. "
        + (
            "This is no text: write the vectors in the text format of word2vec."
            if binary
            else "Mend the line or take it out."
        )
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, blanks for tabs and none at their ends; blank ones are skipped."""
    for number, line in enumerate(open_lines(path), start=1):
        if stripped := line.replace("\t", " ").rstrip(" "):
            yield number, stripped


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _parsed(values: list[str]) -> NDArray[np.float32] | None:
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is seen below
            vector = np.array(values, dtype=np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None
