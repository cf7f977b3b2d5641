"""Dividing texts that are too long for a model at suitable positions, without losing characters."""

import re
import unicodedata
from collections.abc import Callable, Iterable

_CLAUSES = (
    re.compile(r"[.!?…;:][\"'”’»)\]]*(?=\s)|[。！？；：]"),
    re.compile(r"[,–—][\"'”’»)\]]*(?=\s)|[、，،]"),
)
_WHITESPACE = re.compile(r"\s+")
_JOINERS = "\u200c\u200d"


def divide(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Divide a text into parts that fit. Their concatenation is the text.

    A part that does not fit is divided near its middle: preferably after punctuation that ends a clause in its middle
    half (sentence ends, colons and semicolons before commas and dashes), otherwise at the whitespace nearest to the
    middle, otherwise between two characters. A single character is never divided. fits: whether a part fits; called
    with parts stripped of whitespace.
    """
    parts: list[str] = []
    waiting = [text]
    while waiting:
        part = waiting.pop()
        stripped = part.strip()
        if len(stripped) <= 1 or fits(stripped):
            parts.append(part)
        else:
            position = part.index(stripped) + _split_position(stripped)
            waiting += [part[position:], part[:position]]
    return parts


def _split_position(text: str) -> int:
    """Number of characters after which to divide a stripped text of at least two characters."""
    middle = len(text) // 2
    for signs in _CLAUSES:
        ends = (match.end() for match in signs.finditer(text))
        inner = [end for end in ends if len(text) // 4 <= end <= len(text) - len(text) // 4 and end < len(text)]
        if inner:
            return _nearest(inner, middle)
    blanks = [match.start() for match in _WHITESPACE.finditer(text)]
    if blanks:
        return _nearest(blanks, middle)
    between = (position for position in range(middle, len(text)) if not _continues(text, position))
    return next(between, middle)


def _nearest(positions: Iterable[int], middle: int) -> int:
    return min(positions, key=lambda position: abs(position - middle))


def _continues(text: str, position: int) -> bool:
    """Whether the character at `position` continues the preceding one, like a combining accent."""
    return (
        unicodedata.combining(text[position]) > 0
        or unicodedata.category(text[position]) in ("Mn", "Me", "Mc")
        or text[position] in _JOINERS
        or text[position - 1] in _JOINERS
    )
