"""`ShiftDetector`: detects sides whose lines are shifted, so that source n belongs to target n + 1 or n − 1.

The lengths of a sentence and its translation are correlated (Gale and Church 1993), and certain words of both sides
occur together. In shifted files, this holds for neighbouring lines instead. Words also detect shifts in corpora that
are sorted by length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atanh, sqrt

import numpy as np
from numpy.typing import NDArray

from dragoman.data.held_out.association import Association, FeaturePair, features, shifted_pairs

BLOCK = 500
"""Number of pairs that are tested at once."""

MIN_PAIRS = 40
"""Minimum number of pairs that are tested."""

_SHIFTS = (-2, -1, 1, 2)
_LEARNED_BLOCKS = 2
"""Number of blocks at the start of a corpus from which associations are learned."""

_DENSE_BLOCKS, _EVERY = 16, 32
"""Number of blocks whose words are all compared, and the interval of the following ones."""

_MIN_SCORE = 6.0
"""Minimum score of a shift in standard deviations."""

_LARGEST_CORRELATION = 0.999


@dataclass(frozen=True)
class Shift:
    """A shift between the sides of a corpus.

    line: line from which on the sides are probably shifted, in steps of `BLOCK`. lines: the number by which the target
    is shifted: target n + lines belongs to source n. aligned, shifted: the correlation of the lengths of both sides
    before and after this shift is undone. score: how certain the shift is, in standard deviations.
    """

    line: int
    lines: int
    aligned: float
    shifted: float
    score: float

    def describe(self) -> str:
        """Return a description, as the end of a sentence about a corpus."""
        count = f"{abs(self.lines)} line{'' if abs(self.lines) == 1 else 's'}"
        direction = "later" if self.lines > 0 else "earlier"
        where = "" if self.line == 1 else f" from about line {self.line:,} on"
        return (
            f"the two sides seem to be shifted{where}: the translation of a line is {count} {direction} (certainty: "
            f"{self.score:.0f} standard deviations of lengths and words; the lengths of both sides correlate with "
            f"{self.aligned:.2f} as they are, and with {self.shifted:.2f} after the shift is undone)"
        )


class ShiftDetector:
    """Tests the pairs of a corpus, in order, block by block.

    The associations of words are learned from the first blocks of the corpus, for each shift separately, unless those
    of other pairs are given.
    """

    def __init__(self, association: Association | None = None) -> None:
        """association: learned from pairs that are not shifted, such as the training pairs for a validation set."""
        self._associations = {} if association is None else dict.fromkeys((0, *_SHIFTS), association)
        self._pairs: list[tuple[str, str]] = []
        self._learned: list[FeaturePair] = []
        self._blocks = 0
        self.found: Shift | None = None

    def add(self, source: str, target: str) -> None:
        """Add the next pair."""
        self._pairs.append((source, target))
        if len(self._pairs) == BLOCK:
            self._test(is_last=False)

    def finish(self) -> Shift | None:
        """Test the remaining pairs. Returns the first shift, or None."""
        if len(self._pairs) >= MIN_PAIRS:
            self._test(is_last=True)
        return self.found

    def _test(self, is_last: bool) -> None:
        if self.found is None:
            compares_words = self._blocks < _DENSE_BLOCKS or self._blocks % _EVERY == 0 or is_last
            if compares_words and not self._associations:
                self._learn()
            self.found = _find_shift(self._pairs, self._line(), self._associations if compares_words else {})
        self._blocks += 1
        self._pairs = []

    def _line(self) -> int:
        """Return the first line of the current block; 1 if the preceding blocks served to learn associations only."""
        return 1 if self._blocks == _LEARNED_BLOCKS and self._learned else self._blocks * BLOCK + 1

    def _learn(self) -> None:
        if self._blocks < _LEARNED_BLOCKS:
            self._learned += [(features(source), features(target)) for source, target in self._pairs]
        else:
            self._associations = {lines: Association(shifted_pairs(self._learned, lines)) for lines in (0, *_SHIFTS)}


def _find_shift(pairs: Sequence[tuple[str, str]], line: int, associations: Mapping[int, Association]) -> Shift | None:
    lengths = np.log1p(np.array([[len(source), len(target)] for source, target in pairs], np.float64))
    words = [(features(source), features(target)) for source, target in pairs] if associations else []
    aligned = _correlation(lengths, 0)
    shifts = []
    for lines in _SHIFTS:
        shifted = _correlation(lengths, lines)
        # Fisher's transformation has a standard error of 1/√(n − 3) for each of the two correlations
        by_length = (atanh(shifted) - atanh(aligned)) * sqrt((len(pairs) - abs(lines) - 3) / 2)
        score = (by_length + _word_score(words, lines, associations)) / sqrt(2) if associations else by_length
        shifts.append(Shift(line, lines, aligned, shifted, score))
    best = max(shifts, key=lambda shift: shift.score)
    return best if best.score >= _MIN_SCORE else None


def _correlation(lengths: NDArray[np.float64], lines: int) -> float:
    """Return the correlation of the lengths of source n and target n + lines."""
    both = slice(max(0, -lines), len(lengths) - max(0, lines))
    sources, targets = lengths[both, 0], np.roll(lengths[:, 1], -lines)[both]
    if sources.std() == 0 or targets.std() == 0:
        return 0.0
    value = float(np.corrcoef(sources, targets)[0, 1])
    return min(max(value, -_LARGEST_CORRELATION), _LARGEST_CORRELATION)


def _word_score(words: Sequence[FeaturePair], lines: int, associations: Mapping[int, Association]) -> float:
    """Return by how many standard errors the words of pairs are more associated after a shift than before it."""
    aligned = associations[0].scores(words, 0)[max(0, -lines) : len(words) - max(0, lines)]
    differences = associations[lines].scores(words, lines) - aligned
    deviation = float(differences.std())
    return float(differences.mean()) / deviation * sqrt(len(differences)) if deviation > 0 else 0.0
