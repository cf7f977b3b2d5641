"""`Span`: a sentence's markup as a tree, in characters of its text."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman.documents.passage import Mark, Raw


@dataclass
class Point:
    """A mark that is no span's. place: the character that it stands before."""

    place: int
    raw: Raw


@dataclass
class Span:
    """What is marked: the characters `begin` to `end`. before, behind: its marks; None where they are elsewhere.

    A span without its first mark begins with the text, one without its last ends with it. fragile: it cannot be empty.
    """

    begin: int
    end: int
    before: Raw | None = None
    behind: Raw | None = None
    fragile: bool = False
    spans: list["Span"] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)


def tree_of(marks: Sequence[Mark], length: int) -> Span:
    """The whole text of so many characters as a span without marks, with all others in it."""
    root = Span(0, length)
    open_spans = [root]
    for mark in marks:
        if mark.kind == "empty":
            open_spans[-1].points.append(Point(mark.place, mark.raw))
        elif mark.kind == "open":
            span = Span(mark.place, length, mark.raw, fragile=mark.fragile)
            open_spans[-1].spans.append(span)
            open_spans.append(span)
        elif len(open_spans) > 1:
            span = open_spans.pop()
            span.end, span.behind = mark.place, mark.raw
        else:
            begun = Span(0, mark.place, None, mark.raw, mark.fragile, root.spans, root.points)
            root.spans, root.points = [begun], []
    return root
