"""`Splitter`: splits text into sentences; `Sentence`: a sentence of a passage, with its markup."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from dragoman.base.cancellation import until_cancelled
from dragoman.base.packages import import_optional
from dragoman.documents.passage import Mark, Passage
from dragoman.text.division import MAX_LENGTH, divide
from dragoman.text.sentences import split_sentences

_BREAKS = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+|\s{3,}")
_BULLET = re.compile(r"\s*(?:(?:[-–—*+•·▪◦‣>#|]+|[(\[]?[0-9]{1,3}[.)\]]|[(\[]?[A-Za-z][)\]])\s+)*")


class Splitter:
    """Splits text into sentences with the library sentencex. Whitespace between sentences is not part of a sentence.

    No sentence spans a line break, a tab, or three or more spaces. Sentences contain no bullets and list numbers, and
    text without letters is not a sentence. oversized: the number of overlong sentences that were split.
    """

    def __init__(
        self, language: str, fits: Callable[[str], bool], trim: Callable[[str], tuple[int, int]] | None = None
    ) -> None:
        """language: a language code such as `en`. fits: returns whether a text is short enough for the model.

        `fits` is called with texts without whitespace at either end. trim: returns the (begin, end) characters of the
        part of a sentence to translate; None for all of it.
        """
        import_optional("sentencex", "documents")
        self._language, self._fits, self._trim = language, fits, trim
        self.oversized = 0

    def sentences(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the (begin, end) positions of each sentence in order, without whitespace at either end."""
        begin = 0
        for match in until_cancelled(_BREAKS.finditer(text)):
            yield from self._split_line(text, begin, match.start())
            begin = match.end()
        yield from self._split_line(text, begin, len(text))

    def _split_line(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        if not any(map(str.isalpha, text[begin:end])):
            return
        bullet = _BULLET.match(text, begin, end)
        begin = begin if bullet is None else bullet.end()
        for sentence in until_cancelled(split_sentences(text[begin:end], self._language)):
            parts = divide(sentence, lambda part: len(part) <= MAX_LENGTH and self._fits(part))
            self.oversized += len(parts) > 1
            for part in parts:
                stripped = part.strip()
                if any(map(str.isalpha, stripped)):
                    start = begin + part.index(stripped)
                    first, last = (0, len(stripped)) if self._trim is None else self._trim(stripped)
                    yield start + first, start + last
                begin += len(part)


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
