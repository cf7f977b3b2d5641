"""`Sentence`: a sentence of a passage, with its markup."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice, takewhile
from operator import itemgetter

from dragoman.addons.documents.passage import Mark, Passage
from dragoman.inference.control.glossary import Match
from dragoman.text.sentences.splitter import Splitter


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage, which consists of the units `begin` to `end` and the marks `first` to `last`.

    terms: the terms of the glossary in its text, if some of it is kept.
    """

    passage: Passage
    begin: int
    end: int
    first: int
    last: int
    terms: Sequence[Match] = ()

    @cached_property
    def text(self) -> str:
        """The text of the sentence as model input."""
        return "".join(self.passage.texts[self.begin : self.end])

    @cached_property
    def marks(self) -> list[Mark]:
        """The marks in the sentence. Their positions are the indices of the characters of `text` that they precede."""
        inner = self.passage.marks[self.first : self.last]
        return [mark._replace(position=self._ends[mark.position - self.begin]) for mark in inner]

    @cached_property
    def code(self) -> list[tuple[int, str, str]]:
        """The pieces of code to copy, as (position in `text`, text, original form in the document)."""
        if not self.passage.code:
            return []
        return self._pieces((unit, unit + 1) for unit in range(self.begin, self.end) if unit in self.passage.code)

    @cached_property
    def kept(self) -> list[tuple[int, str, str]]:
        """The text with markup that translations copy, such as addresses, in the form of `code`."""
        first = bisect_right(self.passage.kept, self.begin, key=itemgetter(1))
        return self._pieces(takewhile(lambda each: each[0] < self.end, islice(self.passage.kept, first, None)))

    def translated(
        self, piece: tuple[int, str, str], translation: str, taken: bytearray
    ) -> tuple[list[tuple[int, int]], str]:
        """Return where the translation has the term that contains a kept piece, and its form in the document.

        taken: for each character of the translation, 1 if it must not be part of it.
        """
        position, text, raw = piece
        for term in self.terms:
            if term.start <= position and position + len(text) <= term.end:
                for begin, end in term.phrase.find(translation):
                    if 1 not in taken[begin:end]:
                        written, source = (self.passage.escape(each, False) for each in (translation[begin:end], text))
                        return [(begin, end)], raw.replace(source, written) if source in raw else written
        return [], raw

    @property
    def is_plain(self) -> bool:
        """Whether the sentence has neither markup nor code, so that its translation needs no alignment."""
        return not (self.marks or self.code or self.kept)

    def _pieces(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, str, str]]:
        texts, raws, pieces = self.passage.texts, self.passage.raws, list[tuple[int, str, str]]()
        for begin, end in ranges:
            first, last = max(begin, self.begin), min(end, self.end)
            piece = "".join(texts[first:last])
            pieces.append((self._ends[first - self.begin], piece, "".join(raws[first:last])))
        return pieces

    @cached_property
    def _ends(self) -> list[int]:
        """The position in `text` of each unit, and of the end."""
        return [0, *accumulate(map(len, self.passage.texts[self.begin : self.end]))]


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
        ends_with_word = symbols[end - 1].isalnum()
        while last > first and marks[last - 1].position == end and _follows(marks, last - 1, begin):
            if ends_with_word and marks[last - 1].kind == "empty" and marks[last - 1].style == "raised":
                break  # a sign at the last word, which may have another position in the translation
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
