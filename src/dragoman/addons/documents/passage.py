"""`Passage`: a translatable part of a document, with the markup in it; `PassageBuilder` builds one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dragoman.base.cancellation import check_cancelled

MAX_CODE_LENGTH = 100
"""The maximum length, in characters, of code that translations must copy. Longer code is placed after a word."""

MAX_DEPTH = 100
"""The maximum nesting depth of spans. The marks of deeper spans are placed next to their words."""

_CHECK_INTERVAL = 1024
"""Number of units between two checks for cancellation."""

Escape = Callable[[str, bool], str]
"""Writes text of a translation in the document's format; the flag indicates whether the text starts a sentence."""

Raw = tuple["str | Passage", ...]
"""A part of the document that is kept, except for passages in it, such as the description of an image."""


MarkKind = Literal["open", "close", "empty", "break"]


class Mark(NamedTuple):
    """A piece of markup within a passage.

    position: the index of the unit that the mark precedes. kind: `open` or `close` for a mark that opens or closes a
    span of text, `break` for one that divides a sentence into sections whose order translations keep, else `empty`.
    partner: the index of the other mark of the span, or None if that mark is in another passage. must_contain_text:
    whether an empty span, or an empty section before or after a break, is invalid. keep_source: whether a span that
    would become empty keeps its source text, such as a link.
    """

    position: int
    raw: Raw
    kind: MarkKind
    partner: int | None = None
    must_contain_text: bool = False
    keep_source: bool = False


@dataclass(frozen=True)
class Passage:
    """A text as a sequence of units. A unit is a single character or a piece of inline code.

    texts: the text of each unit as model input; raws: the original form of each unit, such as `&amp;` for `&`; marks:
    the markup, sorted by position; code: the indices of the units that translations must copy; escape: encodes the text
    of a translation.
    """

    texts: Sequence[str]
    raws: Sequence[str]
    marks: Sequence[Mark] = ()
    code: frozenset[int] = frozenset()
    escape: Escape = field(default=lambda text, _: text, compare=False)

    @property
    def symbols(self) -> str:
        """One character per unit, for sentence splitting. A letter represents code, and a soft hyphen an empty text."""
        if isinstance(self.texts, str):
            return self.texts
        return "".join("x" if index in self.code else text[:1] or "\u00ad" for index, text in enumerate(self.texts))

    def original(self, begin: int, end: int, first: int, last: int) -> Raw:
        """Return units `begin` to `end` and marks `first` to `last` in their original form."""
        raw: list[str | Passage] = []
        for mark in self.marks[first:last]:
            raw.append("".join(self.raws[begin : mark.position]))
            raw += mark.raw
            begin = max(begin, mark.position)
        raw.append("".join(self.raws[begin:end]))
        return tuple(raw)


def iterate_passages(parts: Sequence["str | Passage"]) -> Iterator[Passage]:
    """Yield all passages, including the passages within marks of other passages."""
    for part in parts:
        if isinstance(part, Passage):
            yield part
            for mark in part.marks:
                yield from iterate_passages(mark.raw)


def raw_text(passage: Passage) -> str:
    """Return the original form of a passage in the document."""
    parts = passage.original(0, len(passage.raws), 0, len(passage.marks))
    return "".join(part if isinstance(part, str) else raw_text(part) for part in parts)


class PassageBuilder:
    """Builds passages from text and markup in document order.

    Consecutive whitespace becomes one unit, and a span without text becomes one mark.
    """

    def __init__(self, escape: Escape) -> None:
        self._escape = escape
        self._clear()

    def _clear(self) -> None:
        self._texts: list[str] = []
        self._raws: list[list[str]] = []  # in pieces, because adding to a string takes time in proportion to its length
        self._marks: list[Mark] = []
        self._trailing: list[list[str]] = []  # blanks that follow each mark and belong to it
        self._names: list[str] = []
        self._code: set[int] = set()

    def add_text(self, text: str, raw: str) -> None:
        """Add a unit."""
        if not len(self._texts) % _CHECK_INTERVAL:
            check_cancelled()
        self._texts.append(text)
        self._raws.append([raw])

    def add_blank(self, raw: str) -> None:
        """Add whitespace. If only marks separate it from other whitespace, it becomes part of the last mark."""
        position = len(self._texts)
        if self._marks and self._marks[-1].position == position and (not position or self._texts[-1] in (" ", "\n")):
            self._trailing[-1].append(raw)
        elif position and self._texts[-1] == " ":
            self._raws[-1].append(raw)
        else:
            self.add_text(" ", raw)

    def add_line_break(self, raw: str) -> None:
        """Add a line break, which also ends a sentence."""
        self.add_text("\n", raw)

    def add_code(self, text: str, raw: str) -> None:
        """Add code that translations must copy. Code that is blank, long or has several lines becomes a mark."""
        text = text.strip()
        if not text or len(text) > MAX_CODE_LENGTH or "\n" in text:
            self.add_mark("empty", (raw,))
            return
        self._code.add(len(self._texts))
        self.add_text(text, raw)

    def add_mark(
        self,
        kind: MarkKind,
        raw: Raw,
        name: str = "",
        must_contain_text: bool = False,
        keep_source: bool = False,
    ) -> None:
        """Add a mark. name: identifies the span. The opening and closing marks of a span have the same name."""
        self._marks.append(Mark(len(self._texts), raw, kind, None, must_contain_text, keep_source))
        self._trailing.append([])
        self._names.append(name)

    def finish(self, receive: Callable[[str | Passage], object]) -> None:
        """Pass everything added since the last call to `receive` as a passage, unless nothing was added."""
        check_cancelled()
        if self._texts or self._marks:
            marks = [
                mark._replace(raw=(*mark.raw, "".join(blanks))) if blanks else mark
                for mark, blanks in zip(self._marks, self._trailing, strict=True)
            ]
            raws = tuple(map("".join, self._raws))
            marks_in_order = _merge_empty_spans(_pair_marks(marks, self._names))
            passage = Passage(tuple(self._texts), raws, marks_in_order, frozenset(self._code), self._escape)
            receive(passage)
        self._clear()


def _pair_marks(marks: list[Mark], names: list[str]) -> list[Mark]:
    """Return the marks with their partners. Partly overlapping or too deeply nested spans become empty marks."""
    marks, open_marks, unmatched = list(marks), list[int](), 0
    open_names = Counter[str]()
    for index, (mark, name) in enumerate(zip(marks, names, strict=True)):
        if mark.kind == "open":
            if len(open_marks) >= MAX_DEPTH:
                marks[index] = mark._replace(kind="empty")
            open_marks.append(index)
            open_names[name] += 1
        elif mark.kind == "close":
            if not open_names[name]:
                unmatched += 1
                if open_marks or unmatched > MAX_DEPTH:
                    marks[index] = mark._replace(kind="empty")
                continue
            while names[open_index := open_marks.pop()] != name:
                marks[open_index] = marks[open_index]._replace(kind="empty")
                open_names[names[open_index]] -= 1
            open_names[name] -= 1
            if len(open_marks) >= MAX_DEPTH:
                marks[index] = mark._replace(kind="empty")
                continue
            marks[open_index] = marks[open_index]._replace(partner=index)
            marks[index] = mark._replace(partner=open_index)
    return marks


def _merge_empty_spans(marks: list[Mark]) -> tuple[Mark, ...]:
    """Return the marks after merging each span without text, including the marks in it, into one empty mark."""
    merged: list[Mark] = []
    new_index: dict[int, int] = {}
    index = 0
    while index < len(marks):
        mark = marks[index]
        end = index
        if mark.kind == "open" and mark.partner is not None and marks[mark.partner].position == mark.position:
            end = mark.partner
            raw = tuple(part for each in marks[index : end + 1] for part in each.raw)
            mark = Mark(mark.position, raw, "empty")
        new_index[index] = len(merged)
        merged.append(mark)
        index = end + 1
    return tuple(each if each.partner is None else each._replace(partner=new_index[each.partner]) for each in merged)
