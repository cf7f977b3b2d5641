"""Loops: a phrase that stands in a row more often than anything in the source does."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.text.words import units
from dragoman.translation.guard.finding import Finding

_LONG_WORD = 12
"""Characters from which on a word is looked into: `lalalalalala`."""


class _Run(NamedTuple):
    """A phrase and how often it stands there in a row, whole."""

    phrase: str
    times: int


def repetition(source: str, output: str) -> Finding | None:
    """The phrase that covers most of the output by standing in a row, where that is a loop.

    Phrases are of words; of characters in scripts without blanks, and within words of at least 12 characters. How often
    is too often depends on a phrase's letters and digits: twice for one of at least 12 in four words, 3 times for
    others of at least two (4 times for two letters within a word), 6 times for a single one, 8 times for signs alone.
    It is no loop where the source has any phrase, or any sign, as often in a row.
    """
    loops = [run for run in _runs(output) if run.times >= _too_often(run.phrase)]
    if not loops:
        return None
    inked = {True: 1, False: 1}
    for run in _runs(source):
        with_letters = any(map(str.isalnum, run.phrase))
        inked[with_letters] = max(inked[with_letters], run.times)
    loops = [run for run in loops if run.times > inked[any(map(str.isalnum, run.phrase))]]
    if not loops:
        return None
    longest = max(loops, key=lambda run: len(run.phrase) * run.times)
    return Finding("repetition", longest.phrase)


def _too_often(phrase: str) -> int:
    letters = sum(map(str.isalnum, phrase))
    if letters < 2:
        return 6 if letters else 8
    return 2 if letters >= 12 and len(units(phrase)) >= 7 else 3  # four words and three blanks


def _runs(text: str) -> Iterator[_Run]:
    """Of words, then of the letters of each long word; the case of letters does not count."""
    places = [(begin, end) for begin, end in units(text) if not text[begin].isspace()]
    words = [text[begin:end].casefold() for begin, end in places]
    for start, size, times in _tandem(words):
        yield _Run(text[places[start][0] : places[start + size - 1][1]], times)
    for word in words:
        if len(word) >= _LONG_WORD and word.isalpha():
            for start, size, times in _tandem(word):
                if times > 3 or (times > 2 and size > 2):  # `gefangenenen` is a word
                    yield _Run(word[start : start + size], times)


def _tandem(items: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """For each size of a phrase the longest row of copies: where it begins, the size, how many whole ones."""
    counts = Counter(items)
    if len(counts) == len(items):
        return
    for size in range(1, len(items) // 2 + 1):
        best, start = 0, 0
        for begin, length in _stretches(items[i] == items[i + size] for i in range(len(items) - size)):
            if length > best:
                best, start = length, begin
        if best >= size:
            yield start, size, best // size + 1


def _stretches(equal: Iterable[bool]) -> Iterator[tuple[int, int]]:
    """Beginning and length of each stretch of True."""
    begin = None
    place = -1
    for place, each in enumerate(equal):
        if each and begin is None:
            begin = place
        elif not each and begin is not None:
            yield begin, place - begin
            begin = None
    if begin is not None:
        yield begin, place + 1 - begin
