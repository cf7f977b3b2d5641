"""Division of texts that are too long for a model, at suitable positions and without loss of characters."""

import re
import unicodedata
from collections.abc import Callable, Iterable

MAX_LENGTH = 1000
"""The maximum length of a sentence in letters. Sentences in practice and in training data are shorter."""

_CLAUSE_ENDS = (
    re.compile(r"[.!?…;:][\"'”’»)\]]*(?=\s)|[。！？；：]"),
    re.compile(r"[,–—][\"'”’»)\]]*(?=\s)|[、，،]"),
)
_WHITESPACE = re.compile(r"\s+")
_JOINERS = "\u200c\u200d"


def divide(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Divide a text into parts that fit. The concatenation of the parts is the text.

    A part that does not fit is divided near its middle. If its middle half contains punctuation that ends a clause,
    the part is divided after this punctuation; sentence ends, colons and semicolons take precedence over commas and
    dashes. If not, it is divided at the whitespace nearest to the middle, or, without any whitespace, between two
    characters. A single character is never divided.

    fits: returns whether a part fits. It is called with parts whose surrounding whitespace is removed.
    """
    parts: list[str] = []
    pending = [text]
    while pending:
        part = pending.pop()
        stripped = part.strip()
        if len(stripped) <= 1 or fits(stripped):
            parts.append(part)
        else:
            position = part.index(stripped) + _split_position(stripped)
            pending += [part[position:], part[:position]]
    return parts


def count_letters(text: str) -> int:
    """Return the number of characters, where a Chinese, Japanese or Korean one counts as three Latin letters."""
    if text.isascii():
        return len(text)
    return len(text) + 2 * sum("\u2e80" <= character <= "\ud7ff" for character in text)


def _split_position(text: str) -> int:
    """Return the number of characters after which to divide a stripped text of at least two characters."""
    middle = len(text) // 2
    for clause_end in _CLAUSE_ENDS:
        ends = (match.end() for match in clause_end.finditer(text))
        inner = [end for end in ends if len(text) // 4 <= end <= len(text) - len(text) // 4 and end < len(text)]
        if inner:
            return _nearest(inner, middle)
    spaces = [match.start() for match in _WHITESPACE.finditer(text)]
    if spaces:
        return _nearest(spaces, middle)
    boundaries = (position for position in range(middle, len(text)) if not is_continuation(text, position))
    return next(boundaries, middle)


def _nearest(positions: Iterable[int], middle: int) -> int:
    return min(positions, key=lambda position: abs(position - middle))


def is_continuation(text: str, position: int) -> bool:
    """Return whether the character at `position` continues the preceding one, like a combining accent."""
    return (
        unicodedata.combining(text[position]) > 0
        or unicodedata.category(text[position]) in ("Mn", "Me", "Mc")
        or text[position] in _JOINERS
        or text[position - 1] in _JOINERS
    )
