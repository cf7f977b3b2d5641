"""`Sentence`: what is translated at once, and what of its passage's markup moves with its words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from dragoman.documents.passage import Mark, Passage
from dragoman.documents.splitter import Splitter


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
