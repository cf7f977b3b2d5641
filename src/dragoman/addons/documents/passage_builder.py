"""`PassageBuilder`: builds passages from text and markup in document order."""

from collections import Counter
from collections.abc import Callable

from dragoman.addons.documents.glued_markup import fold_glued_markup
from dragoman.addons.documents.passage import Escape, Mark, MarkKind, Passage, Raw, Style
from dragoman.base.cancellation import check_cancelled

MAX_CODE_LENGTH = 100
"""The maximum length, in characters, of code that translations must copy. Longer code is placed after a word."""

MAX_DEPTH = 100
"""The maximum nesting depth of spans. The marks of deeper spans are placed next to their words."""

_CHECK_INTERVAL = 1024
"""Number of units between two checks for cancellation."""


class PassageBuilder:
    """Builds passages from text and markup in document order.

    Consecutive whitespace becomes one unit, a span without text becomes one mark, and so do the signs at words.
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
        *,
        must_contain_text: bool = False,
        keep_source: bool = False,
        style: Style = "emphasis",
    ) -> None:
        """Add a mark. name: identifies the span. The opening and closing marks of a span have the same name."""
        self._marks.append(Mark(len(self._texts), raw, kind, None, must_contain_text, keep_source, style))
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
            receive(fold_glued_markup(passage))
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
