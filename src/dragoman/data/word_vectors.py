"""Word vectors in the text format of word2vec, GloVe and fastText: one word per line, followed by its numbers."""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.files.lines import has_broken_utf8, open_lines


class _Format(NamedTuple):
    """Format of a file.

    words: number of words according to the header line; None without a header. width: number of components per vector.
    """

    words: int | None
    width: int


def vector_width(path: Path) -> int:
    """Return the number of components per vector, from the first lines. Raises DataError if they are not vectors."""
    return _read_format(path).width


def read_word_vectors(path: Path, words: Set[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of those `words` that the file contains. If a word is repeated, its first vector is used.

    path: plain, .gz, .bz2, .xz or .zst file, with or without a header line (numbers of words and of dimensions).
    Numbers are separated by spaces or tabs. Words may contain spaces and invalid UTF-8. The numbers of all other words
    are counted but not parsed, so memory use depends on `words`, not on the size of the file. Raises DataError with
    file and line if a line has the wrong number of values, or if a value in the vector of one of the `words` is not a
    finite number. Warns if the header states a different number of words.
    """
    file_format = _read_format(path)
    vectors: dict[str, NDArray[np.float32]] = {}
    count = 0
    for number, line in _lines(path):
        if number == 1 and file_format.words is not None:
            continue
        count += 1
        word, _, numbers = line.partition(" ")
        if line.count(" ") != file_format.width:
            word, *split = line.rsplit(" ", file_format.width)
            _check_line(path, number, line, len(split) == file_format.width and word != "", file_format.width)
            numbers = " ".join(split)
        if word in words and word not in vectors:
            vector = _parse_vector(numbers.split(" "))
            if vector is None:
                raise DataError(
                    f"{path}, line {number}: the vector of {word!r} contains a value that is not a finite number. Fix "
                    "or remove the line."
                )
            vectors[word] = vector
    if file_format.words not in (None, count):
        warn(f"{path}: the header states {file_format.words:,} words, but the file has {count:,}. Is it complete?")
    return vectors


def _read_format(path: Path) -> _Format:
    """Detect the format of the file from its first lines."""
    lines = _lines(path)
    number, line = next(lines, (0, ""))
    if not number:
        raise DataError(f"{path} is empty. Word vectors have one line per word: the word, followed by its numbers.")
    fields = line.split(" ")
    words = None
    if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
        words, width = map(int, fields)
        number, line = next(lines, (0, ""))
        if not number:
            raise DataError(f"{path} has only a header line. Download it again.")
        split = line.rsplit(" ", width)[1:] if width else []
        _check_line(path, number, line, bool(width) and len(split) == width and all(map(_is_number, split)), width)
    else:
        # A word may contain spaces: the vector is the longest run of numbers at the end of the line, after the word.
        width = 0
        while width < len(fields) - 1 and _is_number(fields[-1 - width]):
            width += 1
        _check_line(path, number, line, width > 0, width)
    return _Format(words, width)


def _check_line(path: Path, number: int, line: str, is_valid: bool, width: int) -> None:
    if is_valid:
        return
    start = line[:60]
    binary = has_broken_utf8(start) or any(character < " " for character in start)
    raise DataError(
        f"{path}, line {number}: not a word and {f'{width} numbers' if width else 'its numbers'}: {start!r}. "
        + (
            "This is not text: write the vectors in the text format of word2vec."
            if binary
            else "Fix or remove the line."
        )
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, with tabs replaced by spaces and without trailing spaces. Blank lines are skipped."""
    for number, line in enumerate(open_lines(path, check_encoding=False), start=1):
        if stripped := line.replace("\t", " ").rstrip(" "):
            yield number, stripped


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _parse_vector(values: list[str]) -> NDArray[np.float32] | None:
    try:
        with np.errstate(over="ignore"):  # overflows become infinite values, which are checked below
            vector = np.array(values, dtype=np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None
