"""Where the markup of a sentence stands in its translation: each span covers the words that come from its words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dragoman.documents.passage import Mark, Passage, Raw
from dragoman.documents.sentences import Sentence
from dragoman.text.words import word_spans


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


Place = tuple[int, int]
"""Beginning and end, in characters or in words."""


@dataclass
class Placed:
    """A span or a point in the translation, at the characters `begin` to `end`, and what is in it, in order."""

    begin: int
    end: int
    of: Span | Point
    inner: list["Placed"]


class _Cover(NamedTuple):
    span: Span
    place: Place
    words: list[int]


class Placement:
    """Of one sentence. links: (i, j), word i of the source is word j of the translation.

    A span covers the smallest run of words that holds all that come from its words; spans side by side share no word,
    and one within another stays within. Signs at the ends of the run are left outside, unless the span had such.
    """

    def __init__(self, source: str, target: str, links: Iterable[tuple[int, int]], whole: Sequence[Place] = ()) -> None:
        """whole: characters of the translation within which no mark may stand."""
        self._source, self._target, self._whole = source, target, whole
        self._words, self._target_words = word_spans(source), word_spans(target)
        self._links: dict[int, list[int]] = {}
        for i, j in links:
            if i < len(self._words) and j < len(self._target_words):
                self._links.setdefault(i, []).append(j)

    def placed(self, root: Span) -> Placed:
        """All that is in the root, which covers everything."""
        return self._placed(root, (0, len(self._target_words)), (0, len(self._target)))

    def _placed(self, span: Span, words: Place, characters: Place) -> Placed:
        inner: list[Placed] = []
        points: list[Placed] = []
        at = characters[0]
        for each, place, _ in self._covers(span.spans, words):
            begin, end = self._characters(each, place, characters)
            begin = max(at, begin)
            end = max(begin, end)
            inner.append(self._placed(each, place, (begin, end)))
            at = end
        for point in span.points:
            beside = min(max(self._at(point, words), characters[0]), characters[1])
            beside = next((each.begin for each in inner if each.begin < beside < each.end), beside)
            points.append(Placed(beside, beside, point, []))
        ordered = sorted([*inner, *points], key=lambda each: (each.begin, each.end > each.begin))
        return Placed(*characters, span, ordered)

    def _covers(self, spans: Sequence[Span], within: Place) -> list[_Cover]:
        """The words of each span that stand side by side, in the order of the translation."""
        covers = []
        for span in spans:
            own = [i for i, (begin, end) in enumerate(self._words) if begin < span.end and end > span.begin]
            words = sorted({j for i in own for j in self._links.get(i, ()) if within[0] <= j < within[1]})
            if not words and within[0] < within[1]:
                words = [self._about((span.begin + span.end) / 2, within)]
            begin, end = (words[0], words[-1] + 1) if words else (within[0], within[0])
            begin = within[0] if span.before is None else begin
            end = within[1] if span.behind is None else end
            covers.append(_Cover(span, (begin, max(begin, end)), words))
        covers.sort(key=_cover_order)
        for k in range(1, len(covers)):
            if covers[k].place[0] < covers[k - 1].place[1]:
                covers[k - 1], covers[k] = _cut_apart(covers[k - 1], covers[k])
        return covers

    def _about(self, place: float, within: Place) -> int:
        """The word that stands about as far on in the translation as the character in the source."""
        word = int(place / max(1, len(self._source)) * len(self._target_words))
        return min(max(word, within[0]), within[1] - 1)

    def _characters(self, span: Span, words: Place, within: Place) -> Place:
        first, last = words
        begin = end = self._target_words[first][0] if first < len(self._target_words) else len(self._target)
        if first < last:
            end = self._target_words[last - 1][1]
            if self._source[span.begin : span.begin + 1].isalnum():
                begin += _signs(self._target[slice(*self._target_words[first])])
            if self._source[span.end - 1 : span.end].isalnum():
                end -= _signs(self._target[slice(*self._target_words[last - 1])][::-1])
        begin = within[0] if span.before is None else min(max(self._beside(begin), within[0]), within[1])
        end = within[1] if span.behind is None else min(max(self._beside(end), begin), within[1])
        return begin, end

    def _at(self, point: Point, within: Place) -> int:
        """The character of the translation that a point stands before: beside the word that it stood beside."""
        before, behind = self._source[: point.place], self._source[point.place :]
        ahead = bool(behind) and not behind[0].isspace() and (not before or before[-1].isspace())
        near = [
            i for i, (begin, end) in enumerate(self._words) if (end > point.place if ahead else begin < point.place)
        ]
        if not near or within[0] >= within[1]:
            return 0 if not before.strip() else len(self._target)
        own = near[0] if ahead else near[-1]
        found = [j for j in self._links.get(own, ()) if within[0] <= j < within[1]]
        middle = sum(self._words[own]) / 2
        word = (min(found) if ahead else max(found)) if found else self._about(middle, within)
        begin, end = self._target_words[word]
        if ahead:
            return self._beside(begin)
        if behind and not behind[0].isspace():
            end -= _signs(self._target[begin:end][::-1])
        return self._beside(end)

    def _beside(self, place: int) -> int:
        """The place, or the beginning of what it would divide."""
        return next((begin for begin, end in self._whole if begin < place < end), place)


def _cover_order(cover: _Cover) -> tuple[int, float]:
    """First what goes on from before, last what goes on behind, the others by the middle of their words."""
    at_end = 0 if cover.span.before is None else 2 if cover.span.behind is None else 1
    return at_end, sum(cover.words) / len(cover.words) if cover.words else cover.place[0]


def _cut_apart(left: _Cover, right: _Cover) -> tuple[_Cover, _Cover]:
    """Two that overlap, cut so that the fewest words lie on the wrong side, and no side is empty if that can be."""

    def cost(cut: int) -> tuple[int, int]:
        empty = (cut <= left.place[0]) + (cut >= max(left.place[1], right.place[1]))
        wrong = sum(word >= cut for word in left.words) + sum(word < cut for word in right.words)
        return empty, wrong

    cut = min(range(left.place[0], max(left.place[1], right.place[1]) + 1), key=cost)
    end = max(left.place[1], right.place[1]) if right.span.behind is None else right.place[1]
    return (
        left._replace(place=(left.place[0], min(left.place[1], cut))),
        right._replace(place=(max(right.place[0], cut), max(end, right.place[0], cut))),
    )


def _signs(word: str) -> int:
    """How many characters of a word stand before its first letter or digit; none where it has none."""
    return next((place for place, character in enumerate(word) if character.isalnum()), 0)


def marks_of(placed: Placed) -> tuple[Raw, Raw]:
    """What is written before and behind it. A span that cannot be empty and would be is left out."""
    of = placed.of
    if isinstance(of, Point):
        return of.raw, ()
    if of.fragile and placed.begin == placed.end:
        return (), ()
    return of.before or (), of.behind or ()


Links = Iterable[tuple[int, int]]


def rewritten(sentence: Sentence, translation: str, links: Links) -> Raw:
    """links: which words of the sentence's text the translation's words come from; of use where it has marks.

    A translation that is the text itself leaves everything as it is, byte for byte.
    """
    if translation == sentence.text:
        return sentence.passage.as_it_is(sentence.begin, sentence.end, sentence.first, sentence.last)
    kept: dict[Place, str] = {}
    tree = tree_of(sentence.marks, len(sentence.text))
    pairs = set(links)
    for place, text, raw in sorted(sentence.kept, key=lambda each: -len(each[1])):
        found = _find_kept(text, translation, kept)
        if found is None:  # it stands beside its neighbour then, as a mark does
            tree.points.append(Point(place, (" ", raw)))
            continue
        kept[found] = raw
        pairs = _linked(pairs, _words_at(sentence.text, (place, place + len(text))), _words_at(translation, found))
    placed = Placement(sentence.text, translation, pairs, list(kept)).placed(tree)
    return tuple(_written(placed, translation, kept, sentence.passage))


def _find_kept(text: str, translation: str, taken: Mapping[Place, str]) -> Place | None:
    """Where a text stands in the translation that nothing else stands at, on its own if it can."""
    free: list[Place] = []
    begin = translation.find(text)
    while begin >= 0:
        end = begin + len(text)
        if not any(begin < other[1] and end > other[0] for other in taken):
            free.append((begin, end))
        begin = translation.find(text, begin + 1)
    alone = [
        each
        for each in free
        if not translation[each[0] - 1 : each[0]].isalnum() and not translation[each[1] :][:1].isalnum()
    ]
    return next(iter([*alone, *free]), None)


def _words_at(text: str, place: Place) -> list[int]:
    return [word for word, (begin, end) in enumerate(word_spans(text)) if begin < place[1] and end > place[0]]


def _linked(links: set[tuple[int, int]], source: Sequence[int], target: Sequence[int]) -> set[tuple[int, int]]:
    """With these words linked to one another, and to no others."""
    others = {(i, j) for i, j in links if i not in source and j not in target}
    return others | {(i, j) for i in source for j in target}


def _written(placed: Placed, translation: str, kept: Mapping[Place, str], passage: Passage) -> Iterator[str | Passage]:
    before, behind = marks_of(placed)
    yield from before
    at = placed.begin
    for each in placed.inner:
        yield _escaped_text(translation, at, each.begin, kept, passage)
        yield from _written(each, translation, kept, passage)
        at = each.end
    yield _escaped_text(translation, at, placed.end, kept, passage)
    yield from behind


def _escaped_text(translation: str, begin: int, end: int, kept: Mapping[Place, str], passage: Passage) -> str:
    """A part of the translation as the document writes it."""
    written = ""
    for (start, stop), raw in sorted(kept.items()):
        if begin <= start and stop <= end and start < stop:
            written += passage.escape(translation[begin:start], begin == 0) + raw
            begin = stop
    return written + passage.escape(translation[begin:end], begin == 0)
