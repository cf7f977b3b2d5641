"""`Splitter`: where the sentences of a text begin and end; `Sentence`: one of a passage, with the markup in it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from dragoman.base.packages import import_optional
from dragoman.documents.passage import Mark, Passage
from dragoman.text.division import divide

LONGEST = 1000
"""Characters of what is translated at once. What is longer is no sentence, and longer than what models learn from."""

_BREAKS = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+|\s{3,}")
_BULLET = re.compile(r"\s*(?:(?:[-–—*+•·▪◦‣>#|]+|[(\[]?[0-9]{1,3}[.)\]]|[(\[]?[A-Za-z][)\]])\s+)*")


class Splitter:
    """Sentences by the library sentencex; layout lies between them.

    What no sentence crosses: ends of lines, tabs, runs of three blanks and more. Bullets and numbers of lists do not
    belong to sentences, and what has no letter is none. divided: how many were too long, and were translated in parts.
    """

    def __init__(self, language: str, fits: Callable[[str], bool]) -> None:
        """language: a code such as en. fits: whether the model can read a text, without blanks around it."""
        self._segment = import_optional("sentencex", "documents").segment
        self._language, self._fits = language, fits
        self.divided = 0

    def sentences(self, text: str) -> Iterator[tuple[int, int]]:
        """Where each begins and ends, in order; no blank at either end."""
        begin = 0
        for found in _BREAKS.finditer(text):
            yield from self._of_line(text, begin, found.start())
            begin = found.end()
        yield from self._of_line(text, begin, len(text))

    def _of_line(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        if not any(map(str.isalpha, text[begin:end])):
            return
        bullet = _BULLET.match(text, begin, end)
        begin = begin if bullet is None else bullet.end()
        for sentence in self._segments(text[begin:end]):
            parts = divide(sentence, lambda part: len(part) <= LONGEST and self._fits(part))
            self.divided += len(parts) > 1
            for part in parts:
                inked = part.strip()
                if any(map(str.isalpha, inked)):
                    start = begin + part.index(inked)
                    yield start, start + len(inked)
                begin += len(part)

    def _segments(self, line: str) -> list[str]:
        """The line divided, nothing lost of it."""
        if not line:
            return []
        # a lone surrogate is no character that the library could read
        given = re.sub(r"[\ud800-\udfff]", "\ufffd", line)
        segments, place = [], 0
        for each in self._segment(self._language, given):
            segments.append(line[place : place + len(each)])
            place += len(each)
        return segments if "".join(segments) == line else [line]


@dataclass(frozen=True)
class Sentence:
    """The units `begin` to `end` of a passage, and its marks `first` to `last`; all others stay in place."""

    passage: Passage
    begin: int
    end: int
    first: int
    last: int

    @cached_property
    def text(self) -> str:
        """As the model reads it."""
        return "".join(self.passage.texts[self.begin : self.end])

    @cached_property
    def marks(self) -> list[Mark]:
        """Those within, with the character of `text` that they stand before as their place."""
        ends = [0, *accumulate(map(len, self.passage.texts[self.begin : self.end]))]
        inner = self.passage.marks[self.first : self.last]
        return [mark._replace(place=ends[mark.place - self.begin]) for mark in inner]

    @cached_property
    def kept(self) -> list[tuple[int, str, str]]:
        """What stays as it is: its place in `text`, its text, and what the document has for it."""
        if not self.passage.kept:
            return []
        found, place = [], 0
        for unit in range(self.begin, self.end):
            text = self.passage.texts[unit]
            if unit in self.passage.kept:
                found.append((place, text, self.passage.raws[unit]))
            place += len(text)
        return found


def sentences_of(passage: Passage, splitter: Splitter) -> Iterator[Sentence]:
    """Those that have something to translate, in order."""
    marks, symbols, first = passage.marks, passage.symbols, 0
    for begin, end in splitter.sentences(symbols):
        if not any(symbols[unit].isalpha() and unit not in passage.kept for unit in range(begin, end)):
            continue
        while first < len(marks) and (marks[first].place < begin or _before(marks, first, begin, end)):
            first += 1
        last = first
        while last < len(marks) and marks[last].place <= end:
            last += 1
        while last > first and marks[last - 1].place == end and _behind(marks, last - 1, begin):
            last -= 1
        yield Sentence(passage, begin, end, first, last)
        first = last


def _before(marks: Sequence[Mark], index: int, begin: int, end: int) -> bool:
    """Whether a mark at the beginning of a sentence stays before all of it."""
    mark = marks[index]
    if mark.place != begin:
        return False
    return mark.kind != "open" or mark.partner is None or marks[mark.partner].place >= end


def _behind(marks: Sequence[Mark], index: int, begin: int) -> bool:
    """Whether a mark at the end of a sentence stays behind all of it."""
    mark = marks[index]
    return mark.kind != "close" or mark.partner is None or marks[mark.partner].place <= begin
