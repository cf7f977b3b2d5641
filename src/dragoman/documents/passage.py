"""`Passage`: a run of a document that is translated, with the marks that stand in it; `PassageBuilder` makes one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Escape = Callable[[str, bool], str]
"""Text of a translation as the format writes it; True where it begins a sentence."""

Raw = tuple["str | Passage", ...]
"""What stands in the document, as it is, but for the passages in it, such as a picture's description."""


class Mark(NamedTuple):
    """Markup within a passage.

    place: the unit that it stands before; kind: whether it opens a span of text, closes one, or neither; partner: the
    index of its span's other mark, None where that stands in another passage. fragile: a span of it cannot be empty.
    """

    place: int
    raw: Raw
    kind: Literal["open", "close", "empty"]
    partner: int | None = None
    fragile: bool = False


@dataclass(frozen=True)
class Passage:
    """Units are characters as the model reads them, and what is kept whole.

    texts: of each unit; raws: the same as the document has it, so `&amp;` for `&`; kept: the units, by index, that
    translations have to hold as they are; marks: by place. escape: how translations of it are written.
    """

    texts: Sequence[str]
    raws: Sequence[str]
    marks: Sequence[Mark] = ()
    kept: frozenset[int] = frozenset()
    escape: Escape = field(default=lambda text, _: text, compare=False)

    @property
    def symbols(self) -> str:
        """A character a unit: where sentences end is looked for in it. What is kept is a letter."""
        if isinstance(self.texts, str):
            return self.texts
        return "".join("x" if place in self.kept else text[:1] for place, text in enumerate(self.texts))

    def as_it_is(self, begin: int, end: int, first: int, last: int) -> Raw:
        """What the document has of the units `begin` to `end` and the marks `first` to `last`."""
        raw: list[str | Passage] = []
        for mark in self.marks[first:last]:
            raw.append("".join(self.raws[begin : mark.place]))
            raw += mark.raw
            begin = max(begin, mark.place)
        raw.append("".join(self.raws[begin:end]))
        return tuple(raw)


def passages_in(parts: Sequence["str | Passage"]) -> Iterator[Passage]:
    """All of them, those in marks of others too."""
    for part in parts:
        if isinstance(part, Passage):
            yield part
            for mark in part.marks:
                yield from passages_in(mark.raw)


def as_text(passage: Passage) -> str:
    """What the document has for it."""
    parts = passage.as_it_is(0, len(passage.raws), 0, len(passage.marks))
    return "".join(part if isinstance(part, str) else as_text(part) for part in parts)


LONGEST_KEPT = 100
"""Characters of what translations are asked to hold as it is. What is longer, such as code, goes beside its word."""

DEEPEST = 100
"""Spans within one another. Marks of more stand beside their words."""


class PassageBuilder:
    """Blanks are joined to one unit; what stands around a span without text is one mark."""

    def __init__(self, escape: Escape) -> None:
        self._escape = escape
        self._clear()

    def _clear(self) -> None:
        self._texts: list[str] = []
        self._raws: list[str] = []
        self._marks: list[Mark] = []
        self._names: list[str] = []
        self._kept: set[int] = set()

    def text(self, text: str, raw: str) -> None:
        """A unit."""
        self._texts.append(text)
        self._raws.append(raw)

    def blank(self, raw: str) -> None:
        """A run of blanks. Behind a blank and marks it belongs to the last mark."""
        place = len(self._texts)
        if self._marks and self._marks[-1].place == place and (not place or self._texts[-1] in (" ", "\n")):
            last = self._marks[-1]
            self._marks[-1] = last._replace(raw=(*last.raw, raw))
        elif place and self._texts[-1] == " ":
            self._raws[-1] += raw
        else:
            self.text(" ", raw)

    def line_break(self, raw: str) -> None:
        """What ends a line, and with it a sentence."""
        self.text("\n", raw)

    def keep(self, text: str, raw: str) -> None:
        """What stays as it is."""
        text = text.strip()
        if not text or len(text) > LONGEST_KEPT or "\n" in text:
            self.mark("empty", (raw,))
            return
        self._kept.add(len(self._texts))
        self.text(text, raw)

    def mark(self, kind: Literal["open", "close", "empty"], raw: Raw, name: str = "", fragile: bool = False) -> None:
        """name: a span closes with the name that it opened with."""
        self._marks.append(Mark(len(self._texts), raw, kind, None, fragile))
        self._names.append(name)

    def finish(self, give: Callable[[str | Passage], object]) -> None:
        """Gives what has come since the last time: a passage, or text where there is nothing to translate."""
        if self._texts or self._marks:
            marks = _without_empty_spans(_paired(self._marks, self._names))
            passage = Passage(tuple(self._texts), tuple(self._raws), marks, frozenset(self._kept), self._escape)
            give(passage)
        self._clear()


def _paired(marks: list[Mark], names: list[str]) -> list[Mark]:
    """With their partners. What overlaps another span without lying in it, or lies too deep, is no span."""
    marks, waiting = list(marks), list[int]()
    open_names = Counter[str]()
    for place, (mark, name) in enumerate(zip(marks, names, strict=True)):
        if mark.kind == "open":
            if len(waiting) >= DEEPEST:
                marks[place] = mark._replace(kind="empty")
            waiting.append(place)
            open_names[name] += 1
        elif mark.kind == "close":
            if not open_names[name]:
                if waiting:
                    marks[place] = mark._replace(kind="empty")
                continue
            while names[opened := waiting.pop()] != name:
                marks[opened] = marks[opened]._replace(kind="empty")
                open_names[names[opened]] -= 1
            open_names[name] -= 1
            if len(waiting) >= DEEPEST:
                marks[place] = mark._replace(kind="empty")
                continue
            marks[opened] = marks[opened]._replace(partner=place)
            marks[place] = mark._replace(partner=opened)
    return marks


def _without_empty_spans(marks: list[Mark]) -> tuple[Mark, ...]:
    """Each span without text, and all marks in it, as one mark that is none."""
    found: list[Mark] = []
    new: dict[int, int] = {}
    place = 0
    while place < len(marks):
        mark = marks[place]
        end = place
        if mark.kind == "open" and mark.partner is not None and marks[mark.partner].place == mark.place:
            end = mark.partner
            raw = tuple(part for each in marks[place : end + 1] for part in each.raw)
            mark = Mark(mark.place, raw, "empty")
        new[place] = len(found)
        found.append(mark)
        place = end + 1
    return tuple(each if each.partner is None else each._replace(partner=new[each.partner]) for each in found)
