"""Detects loops, in which a phrase is repeated more times in a row than any phrase of the source."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.text.words import split_units

_LONG_WORD = 12
"""Minimum number of characters of a word in which repetitions are detected, as in `lalalalalala`."""


class _Run(NamedTuple):
    """A phrase and the number of its consecutive complete copies."""

    phrase: str
    times: int


def repeated_phrase(source: str, output: str, fewest: int = 2) -> str | None:
    """Return the phrase whose consecutive copies cover most of the output; None if no copies form a loop.

    Phrases consist of words, or of characters in scripts without spaces and within words of at least 12 characters. The
    number of copies that form a loop depends on the phrase: 2 if it has at least 12 letters and digits in four words, 3
    if it has at least two (4 for two letters within a word), 6 for a single one, 8 for punctuation alone; and at least
    `fewest`. Copies are not a loop if the source repeats any phrase, or any punctuation, as often.
    """
    loops = [run for run in _runs(output) if run.times >= max(_too_often(run.phrase), fewest)]
    if not loops:
        return None
    in_source = {True: 1, False: 1}
    for run in _runs(source):
        with_letters = any(map(str.isalnum, run.phrase))
        in_source[with_letters] = max(in_source[with_letters], run.times)
    loops = [run for run in loops if run.times > in_source[any(map(str.isalnum, run.phrase))]]
    if not loops:
        return None
    longest = max(loops, key=lambda run: len(run.phrase) * run.times)
    return longest.phrase


def _too_often(phrase: str) -> int:
    letters = sum(map(str.isalnum, phrase))
    if letters < 2:
        return 6 if letters else 8
    return 2 if letters >= 12 and len(split_units(phrase)) >= 7 else 3  # four words and three blanks


def _runs(text: str) -> Iterator[_Run]:
    """Yield the runs of words, then those of letters within each long word. Letter case is ignored."""
    spans = [(begin, end) for begin, end in split_units(text) if not text[begin].isspace()]
    words = [text[begin:end].casefold() for begin, end in spans]
    for start, size, times in _tandem(words):
        yield _Run(text[spans[start][0] : spans[start + size - 1][1]], times)
    for word in words:
        if len(word) >= _LONG_WORD and word.isalpha():
            for start, size, times in _tandem(word):
                if times > 3 or (times > 2 and size > 2):  # `gefangenenen` is a word
                    yield _Run(word[start : start + size], times)


def _tandem(items: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the longest run of copies for each phrase length: start, length, number of complete copies."""
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
    """Yield the start and length of each stretch of True."""
    begin = None
    index = -1
    for index, each in enumerate(equal):
        if each and begin is None:
            begin = index
        elif not each and begin is not None:
            yield begin, index - begin
            begin = None
    if begin is not None:
        yield begin, index + 1 - begin
