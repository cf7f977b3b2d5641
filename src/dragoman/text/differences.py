"""`word_differences`: where two texts differ, word by word."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class Difference(NamedTuple):
    """The words `start` to `end` of a text, in place of which another text has the words `other_start` to `other_end`.

    The ends are exclusive, and one of the two ranges may be empty.
    """

    start: int
    end: int
    other_start: int
    other_end: int


def word_differences(words: Sequence[str], others: Sequence[str]) -> tuple[Difference, ...]:
    """Return the differences between the words of two texts in order. The words between them are the same.

    Long runs of common words are matched first, as in Python's `difflib`, so that the differences are readable, but not
    always as few as possible.
    """
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    return tuple(Difference(*ranges) for kind, *ranges in matcher.get_opcodes() if kind != "equal")
