"""Dividing texts that are too long for a model at suitable positions, without losing any character."""

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
    """Divide a text into parts that fit, whose concatenation is the text.

    A part that does not fit is divided near its middle: after a punctuation mark that ends a clause in its middle half,
    with preference for strong marks over commas; otherwise at the whitespace nearest to the middle; otherwise between
    two characters. A single character is never divided. fits: called with parts stripped of whitespace.
    """
    parts: list[str] = []
    waiting = [text]
    while waiting:
        part = waiting.pop()
        inked = part.strip()
        if len(inked) <= 1 or fits(inked):
            parts.append(part)
        else:
            begin = part.index(inked)
            place = begin + _place(inked)
            waiting += [part[place:], part[:place]]
    return parts


def _place(text: str) -> int:
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
    between = (place for place in range(middle, len(text)) if not _continues(text, place))
    return next(between, middle)


def _nearest(places: Iterable[int], middle: int) -> int:
    return min(places, key=lambda place: abs(place - middle))


def _continues(text: str, place: int) -> bool:
    """Whether the character at `place` continues the one before it, like a combining accent."""
    return (
        unicodedata.combining(text[place]) > 0
        or unicodedata.category(text[place]) in ("Mn", "Me", "Mc")
        or text[place] in _JOINERS
        or text[place - 1] in _JOINERS
    )
