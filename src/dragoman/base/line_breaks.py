"""`line_breaks` are the offsets at which a long line is broken in a terminal.

A terminal itself breaks long lines inside words and numbers. Here, they are broken between words, and continued below a
column of a table, or after the indentation of the line.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from rich.cells import cell_len, chop_cells

_INDENT = 2
"""Number of spaces before the continuation of a line, in addition to those before the line."""
_COLUMN = re.compile(r"(?<=\S) {2,}(?=\S)")
_NUMBER = re.compile(r"[\d.,%+−-]+")
_CELL = re.compile(r"\S+(?: \S+)* *| +")
_WORD = re.compile(r"\S+ *| +")
_PART = re.compile(r"[^|/\\;]*[|/\\;]?")
"""A part of a word that is wider than the terminal, such as a path or a signature."""


def fit(text: str, width: int) -> str:
    """Return a text whose lines are broken as by `line_breaks`."""
    return "\n".join(_fit_line(line, width) for line in text.split("\n"))


def _fit_line(line: str, width: int) -> str:
    ends = [0, *line_breaks(line, width), len(line)]
    indent = " " * continuation(line, width)
    return f"\n{indent}".join(line[start:end].rstrip(" ") for start, end in pairwise(ends))


def continuation(line: str, width: int) -> int:
    """Return the number of spaces before the continuation of a line that is too long.

    It is continued below the first column that is no number, after the first one, if this is in the left half.
    """
    for found in _COLUMN.finditer(line):
        if cell_len(line[: found.end()]) > width // 2:
            break
        if not _NUMBER.fullmatch(line[found.end() :].split(" ", 1)[0]):
            return cell_len(line[: found.end()])
    return min(len(line) - len(line.lstrip(" ")) + _INDENT, width // 2)


def line_breaks(line: str, width: int) -> list[int]:
    """Return the offsets at which a line is broken, so that no part is wider than a terminal."""
    if cell_len(line) <= width:
        return []
    indent = continuation(line, width)
    breaks: list[int] = []
    used = 0
    for start, part in _parts(line, width - indent):
        if used + cell_len(part.rstrip(" ")) > width and line[:start].strip(" "):
            breaks.append(start)
            used = indent
        used += cell_len(part)
    return breaks


def _parts(line: str, width: int) -> Iterator[tuple[int, str]]:
    """Yield the parts of a line that stay together, with their offsets; none is wider than `width`."""
    start = 0
    for part in _divide(line, width):
        yield start, part
        start += len(part)


def _divide(line: str, width: int) -> Iterator[str]:
    """Yield the cells of a line, or the words of cells that are too wide, or the parts of words that are too wide."""
    for cell in _CELL.findall(line):
        for word in [cell] if _fits(cell, width) else _WORD.findall(cell):
            for part in [word] if _fits(word, width) else filter(None, _PART.findall(word)):
                yield from chop_cells(part, max(width, 2))


def _fits(text: str, width: int) -> bool:
    return cell_len(text.rstrip(" ")) <= width
