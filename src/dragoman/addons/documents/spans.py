"""`Span`: the markup of a sentence as a tree of spans and points; its sections keep their order in translations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragoman.addons.documents.passage import Mark, Raw, Style


@dataclass
class Point:
    """A mark that neither opens nor closes a span. position: the index of the character that the mark precedes.

    is_break: whether the mark divides the sentence into sections. must_contain_text: whether these must not be empty.
    is_raised: whether the mark is a sign at a word, such as an exponent.
    """

    position: int
    raw: Raw
    is_break: bool = False
    must_contain_text: bool = False
    is_raised: bool = False


@dataclass
class Span:
    """A span of marked characters. opening, closing: the marks of the span, or None for a mark outside the sentence.

    A span without an opening mark starts with the text, and a span without a closing mark ends with the text.
    must_contain_text: whether an empty span is invalid. keep_source: whether a span that would become empty keeps its
    source text. style: as in `Mark`. is_section: whether this is a section between two breaks instead of a span of the
    document.
    """

    begin: int
    end: int
    opening: Raw | None = None
    closing: Raw | None = None
    must_contain_text: bool = False
    keep_source: bool = False
    style: Style = "emphasis"
    spans: list["Span"] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    is_section: bool = False

    @cached_property
    def least_words(self) -> int:
        """The number of words that this span and all spans in it need in order not to be empty."""
        return max(1, sum(each.least_words for each in self.spans))

    @cached_property
    def contains_break(self) -> bool:
        """Whether a break is in this span or in a span within it."""
        return any(each.is_break for each in self.points) or any(each.contains_break for each in self.spans)

    def fills(self, section: "Span", text: str) -> bool:
        """Return whether this span contains all characters of a section of a text, except blanks."""
        return not text[section.begin : self.begin].strip() and not text[self.end : section.end].strip()

    def edges(self) -> Iterator[int]:
        """Yield where the spans in this span begin and end, and where signs are."""
        yield from (point.position for point in self.points if point.is_raised)
        for span in self.spans:
            yield from (span.begin, span.end)
            yield from span.edges()

    def sections(self) -> Iterator[tuple[Point | None, "Span"]]:
        """Yield the sections of this span, each with the break before it, which is None for the first section.

        Breaks that separate texts take precedence: their sections may contain further breaks. Spans with breaks in them
        are in different sections, because their order must not change.
        """
        if not self.contains_break:
            yield None, self
            return
        separates_texts = any(each.must_contain_text for each in self.points)
        breaks, points = list[Point](), list[Point]()
        for each in self.points:
            (breaks if each.is_break and each.must_contain_text == separates_texts else points).append(each)
        dividing = [] if separates_texts else [each for each in self.spans if each.contains_break]
        ordered = sorted([*breaks, *(Point(each.begin, (), True) for each in dividing[1:])], key=_position)
        spans, points_left = iter(self.spans), iter(points)
        span, point = next(spans, None), next(points_left, None)
        begin, before = self.begin, None
        for following in [*ordered, None]:
            end = self.end if following is None else following.position
            section = Span(begin, end, (), (), is_section=True)
            while span is not None and (following is None or span.begin < end):
                section.spans.append(span)
                span = next(spans, None)
            while point is not None and (following is None or point.position < end):
                section.points.append(point)
                point = next(points_left, None)
            yield before, section
            begin, before = end, following


def _position(point: Point) -> int:
    return point.position


def span_tree(marks: Sequence[Mark], length: int) -> Span:
    """Return the markup of a text as a tree. Its root is a span of all `length` characters, without marks."""
    root = Span(0, length)
    open_spans = [root]
    for mark in marks:
        if mark.kind in ("empty", "break"):
            is_raised = mark.style == "raised"
            point = Point(mark.position, mark.raw, mark.kind == "break", mark.must_contain_text, is_raised)
            open_spans[-1].points.append(point)
        elif mark.kind == "open":
            span = Span(
                mark.position,
                length,
                mark.raw,
                must_contain_text=mark.must_contain_text,
                keep_source=mark.keep_source,
                style=mark.style,
            )
            open_spans[-1].spans.append(span)
            open_spans.append(span)
        elif len(open_spans) > 1:
            span = open_spans.pop()
            span.end, span.closing = mark.position, mark.raw
        else:
            continued_span = Span(0, mark.position, None, mark.raw, mark.must_contain_text)
            continued_span.spans, continued_span.points = root.spans, root.points
            root.spans, root.points = [continued_span], []
    return root
