"""`SectionDivider`: divides a translation into the sections of its source, such as cues of subtitles or timed words."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import regex

from dragoman.documents.spans import Point
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
        for i, j in pairs if _is_monotone(pairs) else ():
            counts[i + 1, j + 1] += 1
        self._counts = counts.cumsum(0).cumsum(1)  # [i, j]: the links of the first i and the first j words

    def words_in(self, characters: Range) -> Range:
        """Return the words of the translation that begin within a range of its characters."""
        return bisect_left(self._target_begins, characters[0]), bisect_left(self._target_begins, characters[1])

    def cuts(self, breaks: Sequence[Point], source: Range, target: Range) -> list[int]:
        """Return the character of the translation at which each break divides it, in rising order.

        source, target: the characters of the source that the breaks divide, and the corresponding characters of the
        translation. If there are enough words, each section with text receives one. If not, sections that must contain
        text take precedence; in scripts without spaces, they receive at least a character.
        """
        first, last = self.words_in(target)
        edges = [source[0], *(each.position for each in breaks), source[1]]
        has_text = [bool(self._source[begin:end].strip()) for begin, end in pairwise(edges)]
        has_words = last - first >= sum(has_text)
        musts = [each.must_contain_text for each in breaks]
        needs_text = has_text if has_words else [*musts, any(musts)]
        pending = sum(needs_text)
        has_words = has_words or last - first >= pending
        cuts: list[int] = []
        lowest = floor = target[0]  # floor: the end of the last section that needs text
        for each, needed, is_filled in zip(breaks, needs_text, has_text, strict=False):
            pending -= needed
            if not is_filled:
                cuts.append(lowest)
                continue
            candidates = self._candidates(each, has_words)
            begin = np.searchsorted(candidates, max(lowest, floor + 1) if needed else lowest)
            end = np.searchsorted(candidates, target[1], "right") - pending
            allowed = candidates[min(begin, len(candidates) - 1) : max(begin + 1, end)]
            lowest = max(lowest, min(self._best(each.position, allowed, source, target), target[1]))
            floor = lowest if needed else floor
            cuts.append(lowest)
        return cuts

    def _candidates(self, each: Point, has_words: bool) -> npt.NDArray[np.int64]:
        """Return the characters of the translation at which a break may be placed, in rising order."""
        before, after = self._source[each.position - 1 : each.position], self._source[each.position :][:1]
        is_syllable = bool(before and after) and is_word_character(before) and is_word_character(after)
        if is_syllable or (not has_words and self._is_unspaced):
            return self._graphemes
        return self._word_begins if before.isspace() else self._word_ends

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
        share = (position - source[0]) / max(1, source[1] - source[0])
        deviation = np.abs(candidates - (target[0] + share * (target[1] - target[0])))
        bonus = np.isin(candidates, self._clause_ends) * _CLAUSE_BONUS
        return int(candidates[np.argmin(separated + (deviation / _USUAL_DEVIATION) ** 2 - bonus)])

    @cached_property
    def _clause_ends(self) -> npt.NDArray[np.int64]:
        """The positions after punctuation at the end of a word, and the beginnings of the following words."""
        ends = [match.end() for match in _CLAUSE_END.finditer(self._target)]
        begins = (bisect_left(self._target_begins, end) for end in ends if self._target[end : end + 1].isspace())
        return np.array([*ends, *(self._target_begins[word] for word in begins if word < len(self._target_begins))])


def _is_monotone(pairs: Sequence[tuple[int, int]]) -> bool:
    """Return whether the order of the words in the translation resembles their order in the source."""
    if len({i for i, _ in pairs}) < 2 or len({j for _, j in pairs}) < 2:
        return len(pairs) == 1
    return float(np.corrcoef(np.array(pairs).T)[0, 1]) >= _LEAST_CORRELATION
