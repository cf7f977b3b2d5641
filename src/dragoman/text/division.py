"""Texts that are longer than a model can read, divided where it does least harm. Nothing of them is lost."""

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
    """The text as parts that fit, in order; joined they are the text, character for character.

    A part that does not fit is divided near its middle: after the sign that ends a clause and stands in its middle
    half, a strong one before a comma; without one at the blank nearest to the middle; without one between two
    characters. A single character is never divided, even if it does not fit. fits: is given parts without the blanks
    around them.
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
    """Where to divide a text of two characters or more that has no blanks around it: after so many characters."""
    middle = len(text) // 2
    for signs in _CLAUSES:
        ends = (match.end() for match in signs.finditer(text))
        inner = [end for end in ends if len(text) // 4 <= end <= len(text) - len(text) // 4 and end < len(text)]
        if inner:
            return _nearest(inner, middle)
    blanks = [match.start() for match in _WHITESPACE.finditer(text)]
    if blanks:
        return _nearest(blanks, middle)
    between = (place for place in range(middle, len(text)) if not _goes_on(text, place))
    return next(between, middle)


def _nearest(places: Iterable[int], middle: int) -> int:
    return min(places, key=lambda place: abs(place - middle))


def _goes_on(text: str, place: int) -> bool:
    """Whether what stands there belongs to the character before it, as an accent does."""
    return (
        unicodedata.combining(text[place]) > 0
        or unicodedata.category(text[place]) in ("Mn", "Me", "Mc")
        or text[place] in _JOINERS
        or text[place - 1] in _JOINERS
    )
