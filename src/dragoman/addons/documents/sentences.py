"""`Sentence`: a sentence of a passage, with its markup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from dragoman.addons.documents.passage import Mark, Passage
from dragoman.text.sentences.splitter import Splitter


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage, which consists of the units `begin` to `end` and the marks `first` to `last`."""

    passage: Passage
    begin: int
    end: int
    first: int
    last: int

    @cached_property
    def text(self) -> str:
        """The text of the sentence as model input."""
        return "".join(self.passage.texts[self.begin : self.end])

    @cached_property
    def marks(self) -> list[Mark]:
        """The marks in the sentence. Their positions are the indices of the characters of `text` that they precede."""
        ends = [0, *accumulate(map(len, self.passage.texts[self.begin : self.end]))]
        inner = self.passage.marks[self.first : self.last]
        return [mark._replace(position=ends[mark.position - self.begin]) for mark in inner]

    @cached_property
    def code(self) -> list[tuple[int, str, str]]:
        """The pieces of code to copy, as (position in `text`, text, original form in the document)."""
        if not self.passage.code:
            return []
        pieces, position = [], 0
        for unit in range(self.begin, self.end):
            text = self.passage.texts[unit]
            if unit in self.passage.code:
                pieces.append((position, text, self.passage.raws[unit]))
            position += len(text)
        return pieces


def segment_passage(passage: Passage, splitter: Splitter) -> Iterator[Sentence]:
    """Yield the translatable sentences of a passage in order."""
    marks, symbols, first = passage.marks, passage.symbols, 0
    for begin, end in splitter.sentences(symbols):
        if not any(symbols[unit].isalpha() and unit not in passage.code for unit in range(begin, end)):
            continue
        while first < len(marks) and (marks[first].position < begin or _precedes(marks, first, begin, end)):
            first += 1
        last = first
        while last < len(marks) and marks[last].position <= end:
            last += 1
        while last > first and marks[last - 1].position == end and _follows(marks, last - 1, begin):
            last -= 1
        yield Sentence(passage, begin, end, first, last)
        first = last


def _precedes(marks: Sequence[Mark], index: int, begin: int, end: int) -> bool:
    """Return whether a mark at the start of a sentence stays before the whole sentence."""
    mark = marks[index]
    if mark.position != begin:
        return False
    return mark.kind != "open" or mark.partner is None or marks[mark.partner].position >= end


def _follows(marks: Sequence[Mark], index: int, begin: int) -> bool:
    """Return whether a mark at the end of a sentence stays after the whole sentence."""
    mark = marks[index]
    return mark.kind != "close" or mark.partner is None or marks[mark.partner].position <= begin
