"""`Passage`: a document, or so much of it as is read at once."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LONGEST = 1 << 16
"""Characters."""

_BEFORE_BLANK = re.compile(r".*\S(?= \S)", re.DOTALL)
_BEFORE_SPACE = re.compile(r".*\S(?=[ \t\r\n])", re.DOTALL)


class Passage(NamedTuple):
    """A part of a document; all parts one after another are its whole text. Broken UTF-8 is as in `Pair`.

    line: where it begins in the corpus, counted from 1. begins, ends: whether the document does so with it.
    """

    line: int
    text: str
    begins: bool = True
    ends: bool = True

    @property
    def texts(self) -> tuple[str]:
        """Its only side."""
        return (self.text,)

    @property
    def characters(self) -> int:
        """Of its text."""
        return len(self.text)


def in_passages(line: int, parts: Iterable[str]) -> Iterator[Passage]:
    """A document that begins in that line, given in parts of any length, in passages of at most LONGEST characters.

    Where the parts end makes no difference. A passage ends before the last blank that stands between two words, so that
    tokenizers split its words as they would in the whole document; where there is none, before another kind of space;
    and where there is no space at all, anywhere.
    """
    rest, begins = "", True
    for part in parts:
        rest += part
        place = 0
        while len(rest) - place > LONGEST:
            window = rest[place : place + LONGEST + 1]
            found = _BEFORE_BLANK.match(window) or _BEFORE_SPACE.match(window)
            text = window[: found.end() if found else LONGEST]
            yield Passage(line, text, begins, False)
            begins = False
            line += text.count("\n")
            place += len(text)
        rest = rest[place:]
    yield Passage(line, rest, begins)
