"""`AlignedWords`: the words of a sentence and its translation, divided where markup begins or ends within a word."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import regex

from dragoman.text.words import word_spans

Range = tuple[int, int]
"""The begin and end of a range of characters or words."""

_LEAST_COMMON = 2
"""The number of letters that a word and its translation must share before or after a division."""

_EDGES = regex.compile(r"^[^\p{L}\p{N}]*+|[^\p{L}\p{N}]++$")


class AlignedWords:
    """The words of a sentence and its translation.

    source, target: the characters of each word; links: for each source word, the aligned words of the translation in
    rising order. A word that markup divides is one word if its translation does not show where to divide it.
    """

    def __init__(self, source: str, target: str, links: Iterable[Range], edges: Iterable[int]) -> None:
        """links: as in an alignment of blank-separated words. edges: where markup begins or ends in the source."""
        source_words, target_words = word_spans(source), word_spans(target)
        pairs = [(i, j) for i, j in links if i < len(source_words) and j < len(target_words)]
        pairs = _link_equal(source, target, source_words, target_words, pairs)
        inner = _edges_in(source_words, edges)
        found: dict[int, list[int]] = defaultdict(list)
        for i, j in sorted(pairs):
            found[i].append(j)
        cuts: dict[int, tuple[int, list[int]]] = {}
        taken: set[int] = set()
        for i, offsets in inner.items():
            word = source[slice(*source_words[i])]
            for j in found[i]:
                divided = None if j in taken else _divide(word, offsets, target[slice(*target_words[j])])
                if divided is not None:
                    cuts[i] = (j, divided)
                    taken.add(j)
                    break
        self.source, source_first = _cut(source_words, {i: inner[i] for i in cuts})
        self.target, target_first = _cut(target_words, dict(cuts.values()))
        self._begins = [begin for begin, _ in self.target]
        parts = {(i, j) for i, (j, _) in cuts.items()}
        self.links: dict[int, list[int]] = {}
        for i, j in sorted(pairs):
            sources = range(source_first[i], source_first[i + 1])
            targets = range(target_first[j], target_first[j + 1])
            for number, part in enumerate(sources):
                aligned = targets[number : number + 1] if (i, j) in parts else targets
                self.links.setdefault(part, []).extend(aligned)

    def targets_in(self, characters: Range) -> Range:
        """Return the words of the translation that begin within a range of its characters."""
        return bisect_left(self._begins, characters[0]), bisect_left(self._begins, characters[1])


def _edges_in(words: Sequence[Range], edges: Iterable[int]) -> dict[int, list[int]]:
    """Return the offsets of the edges within each word, by the index of the word."""
    begins = [begin for begin, _ in words]
    inner: dict[int, list[int]] = defaultdict(list)
    for edge in sorted(set(edges)):
        word = bisect_right(begins, edge) - 1
        if word >= 0 and words[word][0] < edge < words[word][1]:
            inner[word].append(edge - words[word][0])
    return dict(inner)


def _cut(words: Sequence[Range], offsets: dict[int, list[int]]) -> tuple[list[Range], list[int]]:
    """Return the words after dividing some at offsets, and the index of the first part of each word and of the end."""
    parts, first = list[Range](), [0]
    for index, (begin, end) in enumerate(words):
        positions = [begin, *(begin + offset for offset in offsets.get(index, ())), end]
        parts += pairwise(positions)
        first.append(len(parts))
    return parts, first


def _divide(word: str, offsets: Sequence[int], translation: str) -> list[int] | None:
    """Return where to divide the translation of a word that is divided at offsets; None if that is not evident.

    It is evident at the same offsets of an equal word, around numbers and signs that occur in the translation, and
    between letters that both words share.
    """
    lower, other = word.casefold(), translation.casefold()
    if len(lower) != len(word) or len(other) != len(translation):
        return None
    if lower == other:
        return list(offsets)
    positions, at = list[int](), 0
    for begin, offset, end in zip([0, *offsets], offsets, [*offsets[1:], len(word)], strict=False):
        position = _position(lower, (begin, offset, end), other, at)
        if position is None or not at < position < len(other):
            return None
        positions.append(position)
        at = position
    return positions


def _position(word: str, around: tuple[int, int, int], translation: str, at: int) -> int | None:
    begin, offset, end = around
    left, right = word[begin:offset], word[offset:end]
    if not any(map(str.isalpha, right)) and (found := translation.find(right, at)) >= 0:
        return found
    if not any(map(str.isalpha, left)) and (found := translation.find(left, at)) >= 0:
        return found + len(left)
    signs = _EDGES.match(right)
    if signs is not None and signs[0] and (found := translation.find(signs[0], at)) > 0:
        return found
    if offset >= _LEAST_COMMON and translation.startswith(word[:offset]):
        return offset
    if len(word) - offset >= _LEAST_COMMON and translation.endswith(word[offset:]):
        return len(translation) - len(word) + offset
    return None


def _link_equal(
    source: str, target: str, source_words: Sequence[Range], target_words: Sequence[Range], pairs: Sequence[Range]
) -> list[Range]:
    """Return the links, with numbers, addresses and codes linked only to their equals in the translation."""
    texts: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, (text, words) in enumerate(((source, source_words), (target, target_words))):
        for index, (begin, end) in enumerate(words):
            key = _key(text[begin:end])
            if key is not None:
                texts[key][side].append(index)
    keys = {j: key for key, (_, right) in texts.items() for j in right}
    linked: dict[str, list[Range]] = defaultdict(list)
    for i, j in pairs:
        if j in keys and i in texts[keys[j]][0]:
            linked[keys[j]].append((i, j))
    equal: list[Range] = []
    for key, (left, right) in texts.items():
        if len(left) == len(right):
            one_to_one = len(linked[key]) == len(dict(linked[key])) == len({j for _, j in linked[key]}) == len(left)
            equal += linked[key] if one_to_one else zip(left, right, strict=True)
    sources, targets = {i for i, _ in equal}, {j for _, j in equal}
    return [*equal, *((i, j) for i, j in pairs if i not in sources and j not in targets)]


def _key(word: str) -> str | None:
    """Return what two numbers or codes have in common if they are equal; None for a usual word."""
    core = _EDGES.sub("", word)
    if core.replace("-", "").replace("'", "").replace("’", "").isalpha() or not core:
        return None
    return core if any(map(str.isalpha, core)) else "".join(filter(str.isalnum, core))
