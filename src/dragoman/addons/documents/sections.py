"""`SectionDivider`: divides a translation into the sections of its source, such as cues of subtitles or timed words."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import regex

from dragoman.addons.documents.spans import Point
from dragoman.text.words import is_unspaced, is_word_character, word_spans

_USUAL_DEVIATION = 12
"""The deviation from the proportional division, in characters, that costs as much as one separated pair of words."""

_CLAUSE_BONUS = 0.75
"""The number of separated word pairs that outweighs a division after punctuation instead of within a clause."""

_CLAUSE_END = regex.compile(r"[.!?…;:,–—。！？；：、，،][\"'”’»)\]]*")
_GRAPHEME = regex.compile(r"\X")
_CLOSING = regex.compile(r"[\p{Pe}\p{Pf}\p{Po}\p{Lm}\s]")

_LEAST_CORRELATION = 0.5
"""The correlation of the positions of aligned words from which the alignment counts as monotone."""

Range = tuple[int, int]


class SectionDivider:
    """Divides the translation of one sentence at the breaks of the source, in the same order.

    A break separates as few aligned words as possible and is near the proportional position. If the translation has
    another word order than the source, the alignment is ignored.
    """

    def __init__(self, source: str, target: str, links: Iterable[tuple[int, int]]) -> None:
        """links: pairs (i, j): word i of the source is aligned with word j of the translation."""
        self._source, self._target = source, target
        self._source_begins = [begin for begin, _ in word_spans(source)]
        self._target_words = word_spans(target)
        self._target_begins = [begin for begin, _ in self._target_words]
        pairs = [(i, j) for i, j in links if i < len(self._source_begins) and j < len(self._target_begins)]
        counts = np.zeros((len(self._source_begins) + 1, len(self._target_begins) + 1), np.int32)
        self._aligned: dict[int, int] = {}  # the first source word that is aligned with each word of the translation
        for i, j in sorted(pairs) if _is_monotone(pairs) else ():
            counts[i + 1, j + 1] += 1
            self._aligned.setdefault(j, i)
        self._counts = counts.cumsum(0).cumsum(1)  # [i, j]: the links of the first i and the first j words

    def words_in(self, characters: Range) -> Range:
        """Return the words of the translation that begin within a range of its characters."""
        return bisect_left(self._target_begins, characters[0]), bisect_left(self._target_begins, characters[1])

    def cuts(self, breaks: Sequence[Point], source: Range, target: Range) -> list[int]:
        """Return the character of the translation at which each break divides it, in rising order.

        breaks: either all or none must separate texts. source, target: the characters of the source that the breaks
        divide, and the corresponding characters of the translation. If there are enough words, each section with text
        receives one. If not, each word is in a section of its own. In scripts without spaces, and for breaks within
        words, sections consist of characters.
        """
        first, last = self.words_in(target)
        edges = [source[0], *(each.position for each in breaks), source[1]]
        has_text = [bool(self._source[begin:end].strip()) for begin, end in pairwise(edges)]
        has_words = last - first >= sum(has_text)
        if not has_words and not self._is_unspaced and not any(map(self._is_syllable, breaks)):
            return self._cut_at_words(breaks, has_text, source, target)
        needs_text = has_words or any(each.must_contain_text for each in breaks)
        pending = sum(has_text) if needs_text else 0
        cuts: list[int] = []
        lowest = target[0]
        for each, is_filled in zip(breaks, has_text, strict=False):
            if not is_filled:
                cuts.append(lowest)
                continue
            pending -= needs_text
            candidates = self._candidates(each, has_words)
            begin = np.searchsorted(candidates, lowest + needs_text)
            end = np.searchsorted(candidates, target[1], "right") - pending
            allowed = candidates[min(begin, len(candidates) - 1) : max(begin + 1, end)]
            lowest = max(lowest, min(self._best(each.position, allowed, source, target), target[1]))
            cuts.append(lowest)
        return cuts

    def _cut_at_words(
        self, breaks: Sequence[Point], has_text: Sequence[bool], source: Range, target: Range
    ) -> list[int]:
        """Return the positions of breaks between fewer words than sections with text.

        The section of each word is that of the first aligned source word, or the proportional one.
        """
        first, last = self.words_in(target)
        filled = [index for index, has in enumerate(has_text) if has]
        positions = [each.position for each in breaks]
        sections: list[int] = []  # of each word, as indices of `filled`
        for number, word in enumerate(range(first, last)):
            fraction = (self._target_begins[word] - target[0]) / max(1, target[1] - target[0])
            aligned = self._aligned.get(word)
            position = (
                source[0] + fraction * (source[1] - source[0]) if aligned is None else self._source_begins[aligned]
            )
            wanted = bisect_left(filled, bisect_right(positions, position))
            lowest = sections[-1] + 1 if sections else 0
            sections.append(min(max(wanted, lowest), len(filled) - (last - first - number)))
        cuts = []
        for index, each in enumerate(breaks, 1):
            word = first + bisect_left([filled[section] for section in sections], index)
            is_before_word = word < last and self._follows_blank(each)
            before = self._target_words[word - 1][1] if word > first else target[0]
            cuts.append(self._target_begins[word] if is_before_word else before)
        return cuts

    def _is_syllable(self, each: Point) -> bool:
        """Return whether a break is within a word of the source."""
        around = self._source[max(0, each.position - 1) : each.position + 1]
        return len(around) == 2 and all(map(is_word_character, around)) and not each.must_contain_text

    def _follows_blank(self, each: Point) -> bool:
        return self._source[max(0, each.position - 1) : each.position].isspace()

    def _candidates(self, each: Point, has_words: bool) -> npt.NDArray[np.int64]:
        """Return the characters of the translation at which a break may be placed, in rising order."""
        if self._is_syllable(each) or (not has_words and self._is_unspaced):
            return self._graphemes
        return self._word_begins if self._follows_blank(each) else self._word_ends

    @cached_property
    def _is_unspaced(self) -> bool:
        """Whether the translation contains letters of a script without spaces between words."""
        return any(map(is_unspaced, self._target))

    @cached_property
    def _word_begins(self) -> npt.NDArray[np.int64]:
        return np.array([*self._target_begins, len(self._target)], np.int64)

    @cached_property
    def _word_ends(self) -> npt.NDArray[np.int64]:
        return np.array([0, *(end for _, end in self._target_words)], np.int64)

    @cached_property
    def _graphemes(self) -> npt.NDArray[np.int64]:
        ends = (match.end() for match in _GRAPHEME.finditer(self._target))
        inner = [end for end in ends if not _CLOSING.match(self._target, end)]
        return np.array([0, *inner], np.int64)

    def _best(self, position: int, candidates: npt.NDArray[np.int64], source: Range, target: Range) -> int:
        """Return the candidate that separates the fewest aligned words and is near the proportional position."""
        i = bisect_left(self._source_begins, position)
        words = np.searchsorted(self._target_begins, candidates)
        separated = self._counts[i, -1] - 2 * self._counts[i, words] + self._counts[-1, words]
        fraction = (position - source[0]) / max(1, source[1] - source[0])
        deviation = np.abs(candidates - (target[0] + fraction * (target[1] - target[0])))
        bonus = np.isin(candidates, self._clause_ends) * _CLAUSE_BONUS
        return int(candidates[np.argmin(separated + (deviation / _USUAL_DEVIATION) ** 2 - bonus)])

    @cached_property
    def _clause_ends(self) -> npt.NDArray[np.int64]:
        """The positions after punctuation at the end of a word, and the starts of the following words."""
        ends = [match.end() for match in _CLAUSE_END.finditer(self._target)]
        begins = (bisect_left(self._target_begins, end) for end in ends if self._target[end : end + 1].isspace())
        return np.array([*ends, *(self._target_begins[word] for word in begins if word < len(self._target_begins))])


def _is_monotone(pairs: Sequence[tuple[int, int]]) -> bool:
    """Return whether the order of the words in the translation resembles their order in the source."""
    if len({i for i, _ in pairs}) < 2 or len({j for _, j in pairs}) < 2:
        return len(pairs) == 1
    return float(np.corrcoef(np.array(pairs).T)[0, 1]) >= _LEAST_CORRELATION
