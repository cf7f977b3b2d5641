"""Places the markup of a sentence in its translation: a span covers the words aligned with its source words."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dragoman.addons.documents.aligned_words import AlignedWords, Range
from dragoman.addons.documents.passage import Passage, Raw
from dragoman.addons.documents.sections import SectionDivider
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.documents.spans import Point, Span, span_tree
from dragoman.text.words import word_spans

Links = Iterable[tuple[int, int]]
"""Pairs (i, j): word i of the source is aligned with word j of the translation."""

_MOST_OCCURRENCES = 50
"""The maximum number of occurrences of a text among which the aligned one is chosen; of more, it is the first."""


def render_translation(sentence: Sentence, translation: str, links: Links) -> Raw:
    """Return the replacement of a sentence in its document: the translation with the sentence's markup.

    links: the word alignment of the sentence and its translation, which is only used if the sentence has markup. If the
    translation is identical to the text, the original form of the sentence is returned.
    """
    if translation == sentence.text:
        return sentence.passage.original(sentence.begin, sentence.end, sentence.first, sentence.last)
    code: dict[Range, str] = {}
    root = span_tree(sentence.marks, len(sentence.text))
    pairs = set(links)
    words, target_words = word_spans(sentence.text), word_spans(translation)
    taken, taken_sources = bytearray(len(translation)), bytearray(len(sentence.text))
    for position, text, raw in sorted([*sentence.code, *sentence.kept], key=lambda piece: -len(piece[1])):
        found = _find_code(text, translation, taken)
        if not found:
            found, raw = sentence.translated((position, text, raw), translation, taken)
        if not found:  # the model omitted the code, so it is placed like a mark
            root.points.append(_omitted(sentence.text, position, text, raw))
            continue
        source_range = (position, position + len(text))
        source_words = _words_in(words, source_range)
        code_range = found[0]
        if 1 < len(found) <= _MOST_OCCURRENCES:  # the text may also occur as a word that is not code
            before = sum(begin < position for begin, _ in _find_code(text, sentence.text, taken_sources))
            code_range = _aligned(found, before, source_words, target_words, pairs=pairs)
        for places, (begin, end) in ((taken_sources, source_range), (taken, code_range)):
            places[begin:end] = b"\1" * (end - begin)
        code[code_range] = raw
        pairs = _link_exclusively(pairs, source_words, _words_in(target_words, code_range))
    placed = Placement(sentence.text, translation, pairs, root, list(code)).place()
    return tuple(_write(placed, translation, code, sentence))


def _omitted(source: str, position: int, text: str, raw: str) -> Point:
    """Return where code that the model omitted is inserted."""
    end = position + len(text)
    if any(map(str.isalnum, source[end:])) and not source[:position][-1:].strip():
        return Point(position, (raw, " "))
    return Point(end, (" ", raw))


@dataclass
class PlacedItem:
    """A span or point at the characters `begin` to `end` of the translation, with its nested items in order."""

    begin: int
    end: int
    item: Span | Point
    children: list["PlacedItem"]

    def marks(self) -> tuple[Raw, Raw]:
        """Return the marks before and after the content. An empty span that must contain text has no marks."""
        item = self.item
        if isinstance(item, Point):
            return item.raw, ()
        if item.must_contain_text and self.begin == self.end:
            return (), ()
        return item.opening or (), item.closing or ()


class _Cover(NamedTuple):
    """A range of translated words that a span covers. words: the translated words aligned with the span's words."""

    span: Span
    covered: Range
    words: list[int]


class Placement:
    """Places the markup of one sentence in its translation.

    A span covers the smallest range that contains all words aligned with its source words. Adjacent spans share no
    word, and nested spans stay nested. Punctuation at the ends of the range is left outside, unless the span had some.
    """

    def __init__(self, source: str, target: str, links: Links, root: Span, unbreakable: Sequence[Range] = ()) -> None:
        """root: the markup. unbreakable: character ranges of the translation that no mark may divide."""
        self._source, self._target, self._root, self._unbreakable = source, target, root, unbreakable
        self._pairs = tuple(links)
        words = AlignedWords(source, target, self._pairs, root.edges())
        self._source_words, self._target_words, self._links = words.source, words.target, words.links
        self._words = words

    def place(self) -> PlacedItem:
        """Place everything within the root, which covers the whole translation."""
        return self._place(self._root, (0, len(self._target_words)), (0, len(self._target)))

    @cached_property
    def _divider(self) -> SectionDivider:
        return SectionDivider(self._source, self._target, self._pairs)

    def _place(self, span: Span, words: Range, characters: Range) -> PlacedItem:
        if span.contains_break and len(sections := list(span.sections())) > 1:
            return self._place_sections(span, sections, characters)
        return self._place_section(span, words, characters)

    def _place_sections(
        self, span: Span, sections: Sequence[tuple[Point | None, Span]], characters: Range
    ) -> PlacedItem:
        """Place the sections of a span one after the other. The breaks and items of all sections become its items."""
        breaks = [each for each, _ in sections if each is not None]
        cuts = map(self._avoid_dividing, self._divider.cuts(breaks, (span.begin, span.end), characters))
        children: list[PlacedItem] = []
        begin = characters[0]
        for (_, section), following, cut in zip(sections, [*breaks, None], [*cuts, characters[1]], strict=True):
            end = max(begin, cut)
            children += self._place(section, self._words.targets_in((begin, end)), (begin, end)).children
            if following is not None:
                children.append(PlacedItem(end, end, following, []))
            begin = end
        return PlacedItem(*characters, span, children)

    def _place_section(self, span: Span, words: Range, characters: Range) -> PlacedItem:
        children: list[PlacedItem] = []
        points: list[PlacedItem] = []
        cursor = characters[0]
        attached, spans = list[Span](), list[Span]()
        for each in span.spans:
            (attached if self._is_attached(each) else spans).append(each)
        for each, covered, _ in self._covers(span, spans, words):
            begin, end = self._characters(each, covered, characters)
            begin = max(cursor, begin)
            end = max(begin, end)
            children.append(self._place(each, covered, (begin, end)))
            cursor = end
        items: list[Span | Point] = [*span.points, *attached]
        for item in sorted(items, key=_source_position):
            at = item.position if isinstance(item, Point) else item.begin
            position = min(max(self._position(at, words), characters[0]), characters[1])
            for child in children:
                if child.begin < position < child.end and isinstance(child.item, Span):
                    position = child.begin if at <= child.item.begin else child.end
            if isinstance(item, Point):
                points.append(PlacedItem(position, position, item, []))
            else:
                points.append(self._place(item, (0, 0), (position, position)))
        ordered = sorted([*children, *points], key=lambda each: (each.begin, each.end > each.begin))
        return PlacedItem(*characters, span, ordered)

    def _is_attached(self, span: Span) -> bool:
        """Return whether a span is a raised part of a word whose translation does not show where the part is."""
        if span.style != "raised" or span.opening is None or span.closing is None:
            return False
        word = bisect_right(self._source_words, span.begin, key=_begin) - 1
        return word >= 0 and self._source_words[word][0] < span.begin < self._source_words[word][1]

    def _covers(self, parent: Span, spans: Sequence[Span], within: Range) -> list[_Cover]:
        """Return the translated words that each of the spans in a span covers, in the order of the translation."""
        if parent.is_section and len(spans) == 1 and spans[0].fills(parent, self._source):
            return [_Cover(spans[0], within, [])]
        covers = []
        for span in spans:
            source_words = [
                i for i, (begin, end) in enumerate(self._source_words) if begin < span.end and end > span.begin
            ]
            words = sorted({j for i in source_words for j in self._links.get(i, ()) if within[0] <= j < within[1]})
            if not words and within[0] < within[1]:
                words = [self._word_near((span.begin + span.end) / 2, within)]
            begin, end = (words[0], words[-1] + 1) if words else (within[0], within[0])
            begin = within[0] if span.opening is None else begin
            end = within[1] if span.closing is None else end
            covers.append(_Cover(span, (begin, max(begin, end)), words))
        covers.sort(key=_target_order)
        for k in range(1, len(covers)):
            if covers[k].covered[0] < covers[k - 1].covered[1]:
                covers[k - 1], covers[k] = _separate(covers[k - 1], covers[k])
        return _widen(covers, within)

    def _word_near(self, position: float, within: Range) -> int:
        """Return the word at the same relative position in the translation as a character in the source."""
        word = int(position / max(1, len(self._source)) * len(self._target_words))
        return min(max(word, within[0]), within[1] - 1)

    def _characters(self, span: Span, words: Range, within: Range) -> Range:
        first, last = words
        begin = end = self._target_words[first][0] if first < len(self._target_words) else len(self._target)
        if first < last:
            end = self._target_words[last - 1][1]
            if self._source[span.begin : span.begin + 1].isalnum():
                begin += _leading_punctuation(self._target[slice(*self._target_words[first])])
            last_word = self._target[slice(*self._target_words[last - 1])]
            if self._source[span.end - 1 : span.end].isalnum():
                end -= _leading_punctuation(last_word[::-1])
            elif last_word.endswith(following := _punctuation_after(self._source, span.end)):
                end -= len(following)
        begin = within[0] if span.opening is None else min(max(self._avoid_dividing(begin), within[0]), within[1])
        end = within[1] if span.closing is None else min(max(self._avoid_dividing(end), begin), within[1])
        return begin, end

    def _position(self, position: int, within: Range) -> int:
        """Return the character of the translation that a point precedes, so that the point stays next to its word."""
        before, after = self._source[:position], self._source[position:]
        is_leading = bool(after) and not after[0].isspace() and (not before or before[-1].isspace())
        key, find = (_end, bisect_right) if is_leading else (_begin, bisect_left)
        source_word = find(self._source_words, position, key=key) - (not is_leading)
        if not 0 <= source_word < len(self._source_words) or within[0] >= within[1]:
            return 0 if not before.strip() else len(self._target)
        found = [j for j in self._links.get(source_word, ()) if within[0] <= j < within[1]]
        middle = sum(self._source_words[source_word]) / 2
        word = (min(found) if is_leading else max(found)) if found else self._word_near(middle, within)
        part = self._source[self._source_words[source_word][0] : position].casefold()
        if not is_leading and position < self._source_words[source_word][1]:  # the word may have become several
            word = next((j for j in found if self._target[slice(*self._target_words[j])].casefold() == part), word)
        begin, end = self._target_words[word]
        if is_leading:
            return self._avoid_dividing(begin)
        if after and not after[0].isspace():
            end -= _leading_punctuation(self._target[begin:end][::-1])
        return self._avoid_dividing(end)

    def _avoid_dividing(self, position: int) -> int:
        """Return the position, or the start of the unbreakable range that contains the position."""
        return next((begin for begin, end in self._unbreakable if begin < position < end), position)


def _begin(characters: Range) -> int:
    return characters[0]


def _end(characters: Range) -> int:
    return characters[1]


def _source_position(item: Span | Point) -> int:
    return item.position if isinstance(item, Point) else item.begin


def _target_order(cover: _Cover) -> tuple[int, float]:
    """Sort key: spans that start before the sentence first, spans that end after it last, others by mean position."""
    at_end = 0 if cover.span.opening is None else 2 if cover.span.closing is None else 1
    return at_end, sum(cover.words) / len(cover.words) if cover.words else cover.covered[0]


def _separate(left: _Cover, right: _Cover) -> tuple[_Cover, _Cover]:
    """Divide two overlapping covers so that neither is empty, if possible, and few words are on the wrong side."""

    def cost(cut: int) -> tuple[int, int]:
        empty = (cut <= left.covered[0]) + (cut >= max(left.covered[1], right.covered[1]))
        wrong = sum(word >= cut for word in left.words) + sum(word < cut for word in right.words)
        return empty, wrong

    cut = min(range(left.covered[0], max(left.covered[1], right.covered[1]) + 1), key=cost)
    end = max(left.covered[1], right.covered[1]) if right.span.closing is None else right.covered[1]
    return (
        left._replace(covered=(left.covered[0], min(left.covered[1], cut))),
        right._replace(covered=(max(right.covered[0], cut), max(end, right.covered[0], cut))),
    )


def _widen(covers: list[_Cover], within: Range) -> list[_Cover]:
    """Return the covers of sibling spans, each wide enough for the spans in it, if there are enough words."""
    needed = [cover.span.least_words for cover in covers]
    total = sum(needed)
    if total > within[1] - within[0]:
        return covers
    widened, position = [], within[0]
    for cover, words in zip(covers, needed, strict=True):
        begin = min(max(cover.covered[0], position), within[1] - total)
        end = min(max(cover.covered[1], begin + words), within[1] - total + words)
        widened.append(cover._replace(covered=(begin, end)))
        position, total = end, total - words
    return widened


def _punctuation_after(text: str, position: int) -> str:
    """Return the punctuation from a position to the next letter, digit or whitespace."""
    end = position
    while end < len(text) and not text[end].isalnum() and not text[end].isspace():
        end += 1
    return text[position:end]


def _leading_punctuation(word: str) -> int:
    """Return the number of characters before the first letter or digit of a word, or 0 if there is none."""
    return next((index for index, character in enumerate(word) if character.isalnum()), 0)


def _find_code(text: str, translation: str, taken: bytearray) -> list[Range]:
    """Find a text in the translation. taken: for each character of the translation, 1 if it must not be part of it.

    If some occurrences are separate words, only these are returned. A text in other capitals is found if there is no
    other.
    """
    unused: list[Range] = []
    begin = translation.find(text)
    while begin >= 0:
        end = begin + len(text)
        if 1 not in taken[begin:end]:
            unused.append((begin, end))
        begin = translation.find(text, begin + 1)
    if (
        not unused
        and len(lower := translation.lower()) == len(translation)
        and (lower, text) != (translation, text.lower())
    ):
        return _find_code(text.lower(), lower, taken)
    separate_words = [
        each
        for each in unused
        if not translation[each[0] - 1 : each[0]].isalnum() and not translation[each[1] :][:1].isalnum()
    ]
    return separate_words or unused


def _aligned(
    ranges: Sequence[Range],
    before: int,
    source: Sequence[int],
    target_words: Sequence[Range],
    *,
    pairs: Collection[tuple[int, int]],
) -> Range:
    """Return the occurrence of a text that is aligned with most of the `source` words, of several the one in the same
    order. before: the number of occurrences before it in the source."""

    def score(index: int) -> tuple[int, int]:
        words = _words_in(target_words, ranges[index])
        return sum((i, j) in pairs for i in source for j in words), -abs(index - before)

    return ranges[max(range(len(ranges)), key=score)]


def _words_in(words: Sequence[Range], characters: Range) -> range:
    begin, end = characters
    return range(bisect_right(words, begin, key=_end), bisect_left(words, end, key=_begin))


def _link_exclusively(
    links: set[tuple[int, int]], source: Sequence[int], target: Sequence[int]
) -> set[tuple[int, int]]:
    """Return the links after linking the given words only to each other."""
    others = {(i, j) for i, j in links if i not in source and j not in target}
    return others | {(i, j) for i in source for j in target}


def _write(
    placed: PlacedItem, translation: str, code: Mapping[Range, str], sentence: Sentence
) -> Iterator[str | Passage]:
    opening, closing = placed.marks()
    yield from opening
    if isinstance(placed.item, Span) and _keeps_source(placed, sentence):
        yield sentence.passage.escape(sentence.text[placed.item.begin : placed.item.end], False)
    cursor = placed.begin
    for number, each in enumerate(placed.children):
        yield _escaped(translation, cursor, each.begin, code, sentence.passage)
        yield from _write(each, translation, code, sentence)
        cursor = each.end
        is_last = cursor == len(translation) and number + 1 == len(placed.children)
        if _keeps_source(each, sentence) and not is_last and not translation[cursor : cursor + 1].isspace():
            yield " "
    yield _escaped(translation, cursor, placed.end, code, sentence.passage)
    yield from closing


def _keeps_source(placed: PlacedItem, sentence: Sentence) -> bool:
    """Whether a span keeps its source text, because the translation has no word for it."""
    span = placed.item
    if not isinstance(span, Span) or not span.keep_source or placed.begin < placed.end:
        return False
    is_whole = span.opening is not None and span.closing is not None
    return is_whole and any(map(str.isalnum, sentence.text[span.begin : span.end]))


def _escaped(translation: str, begin: int, end: int, code: Mapping[Range, str], passage: Passage) -> str:
    """Return a part of the translation, encoded in the document's format."""
    written = ""
    for (start, stop), raw in sorted(code.items()):
        if begin <= start and stop <= end and start < stop:
            written += passage.escape(translation[begin:start], begin == 0) + raw
            begin = stop
    return written + passage.escape(translation[begin:end], begin == 0)
