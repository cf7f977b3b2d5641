"""`PassageBuilder`: makes a passage of text and markup as they come."""

from collections import Counter
from collections.abc import Callable
from typing import Literal

from dragoman.documents.passage import Escape, Mark, Passage, Raw

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
