"""What a document has in the place of a sentence: its translation, with the sentence's markup in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dragoman.documents.passage import Passage, Raw
from dragoman.documents.placement import Place, Placed, Placement, marks_of
from dragoman.documents.sentence import Sentence
from dragoman.documents.span import Point, tree_of
from dragoman.text.whitespace import word_spans

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
        found = _find(text, translation, kept)
        if found is None:  # it stands beside its neighbour then, as a mark does
            tree.points.append(Point(place, (" ", raw)))
            continue
        kept[found] = raw
        pairs = _linked(pairs, _words(sentence.text, (place, place + len(text))), _words(translation, found))
    placed = Placement(sentence.text, translation, pairs, list(kept)).placed(tree)
    return tuple(_written(placed, translation, kept, sentence.passage))


def _find(text: str, translation: str, taken: Mapping[Place, str]) -> Place | None:
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


def _words(text: str, place: Place) -> list[int]:
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
        yield _text(translation, at, each.begin, kept, passage)
        yield from _written(each, translation, kept, passage)
        at = each.end
    yield _text(translation, at, placed.end, kept, passage)
    yield from behind


def _text(translation: str, begin: int, end: int, kept: Mapping[Place, str], passage: Passage) -> str:
    """A part of the translation as the document writes it."""
    written = ""
    for (start, stop), raw in sorted(kept.items()):
        if begin <= start and stop <= end and start < stop:
            written += passage.escape(translation[begin:start], begin == 0) + raw
            begin = stop
    return written + passage.escape(translation[begin:end], begin == 0)
