"""`MismatchLimit`: the score below which pairs are regarded as mismatched, estimated with the scores of decoys.

The distribution of the scores of decoys is that of mismatched pairs, so the fraction of mismatched pairs in a corpus,
and the fraction of good pairs below a score, can be estimated without knowing which pairs are good. Source of the
method: Elias and Gygi 2007, "Target-decoy search strategy for increased confidence in large-scale protein
identifications by mass spectrometry".
"""

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_LOSS = 0.02
"""Maximum fraction of the good pairs that may be dropped, by estimate."""

_MOST_FRACTION = 0.97
_LOWEST, _BINS_PER_UNIT = -30, 100


class MismatchLimit(NamedTuple):
    """The highest score at which pairs are dropped. fraction: estimated fraction of mismatched pairs in the corpus."""

    score: float
    fraction: float

    @classmethod
    def estimate(cls, scores: Iterable[NDArray[np.floating]], decoys: NDArray[np.floating]) -> "MismatchLimit":
        """Estimate the limit from the scores of a corpus and those of decoys.

        If F(x) and D(x) are the fractions of the pairs and of the decoys with scores of at most x, and m is the
        fraction of mismatched pairs, the fraction of good pairs that are lost is (F(x) - m · D(x)) / (1 - m). The limit
        is the highest score at which at most MAX_LOSS of the good pairs are lost, and at least half of the dropped
        pairs are mismatched even if m is F(x) / D(x) at the first quartile of the decoys, which hardly any good pair
        reaches.
        """
        distributions = _Distributions.of(scores, decoys)
        pairs, mismatched = distributions.pairs, distributions.decoys
        fraction, error = distributions.mismatched_fraction()
        cautious, lower = max(0.0, fraction - error), min(fraction, distributions.ratio(0.25))
        lost = (pairs - cautious * mismatched) / (1 - cautious)
        allowed = (lost <= MAX_LOSS) & (2 * lower * mismatched >= pairs) & (pairs > 0)
        score = _score(int(np.flatnonzero(allowed)[-1])) if allowed.any() else -math.inf
        return cls(score, fraction)


class _Distributions(NamedTuple):
    """The fractions of the pairs, F(x), and of the decoys, D(x), with scores of at most x, by bin; and their
    numbers."""

    pairs: NDArray[np.float64]
    decoys: NDArray[np.float64]
    pair_count: int
    decoy_count: int

    @classmethod
    def of(cls, scores: Iterable[NDArray[np.floating]], decoys: NDArray[np.floating]) -> "_Distributions":
        """NaNs do not count."""
        counts = [_cumulative_counts(each) for each in (scores, [decoys])]
        pairs, mismatched = (each / max(1, each[-1]) for each in counts)
        return cls(pairs, mismatched, *(int(each[-1]) for each in counts))

    def ratio(self, quantile: float) -> float:
        """Return F(x) / D(x) at a quantile of the decoys."""
        index = self._index(quantile)
        return float(self.pairs[index] / self.decoys[index])

    def mismatched_fraction(self) -> tuple[float, float]:
        """Return an estimate of the fraction of mismatched pairs, at most _MOST_FRACTION, and its standard error.

        At scores that good pairs do not have, the fraction is F(x) / D(x). Hardly any good pair reaches the median of
        the decoys, but mismatched pairs of some kinds reach it less often than decoys. At the third quartile, the kind
        matters less, but more good pairs reach it; their fraction is estimated by a normal distribution and subtracted.
        Both estimates are rather too low, so the higher one is used.
        """
        by_median = min(self.ratio(0.5), self.ratio(0.75))
        third = self._index(0.75)
        by_quartile = float((self.pairs[third] - self._good_fraction(third)) / self.decoys[third])
        fraction = min(_MOST_FRACTION, max(by_median, by_quartile))
        below = float(self.pairs[self._index(0.5)]) * self.pair_count
        return fraction, fraction * math.sqrt(1 / max(1.0, below) + 1 / max(1, self.decoy_count))

    def _good_fraction(self, index: int) -> float:
        """Return the estimated fraction of pairs that are good and have a score of at most that of a bin.

        The scores of good pairs are assumed to be normal. The lowest scores are regarded as those of mismatched pairs,
        whose fraction is F(x) / D(x) at the first quartile of the decoys. The median and the upper quartile of the
        other scores determine the distribution.
        """
        mismatched = min(_MOST_FRACTION, self.ratio(0.25))
        median, upper = (
            _score(int(np.searchsorted(self.pairs, mismatched + each * (1 - mismatched)))) for each in (0.5, 0.75)
        )
        deviation = max(1 / _BINS_PER_UNIT, (upper - median) / NormalDist().inv_cdf(0.75))
        return (1 - mismatched) * NormalDist(median, deviation).cdf(_score(index))

    def _index(self, quantile: float) -> int:
        return int(np.searchsorted(self.decoys, quantile))


def _score(index: int) -> float:
    """Return the highest score of a bin."""
    return _LOWEST + index / _BINS_PER_UNIT


def _cumulative_counts(scores: Iterable[NDArray[np.floating]]) -> NDArray[np.int64]:
    """Return the numbers of scores that are at most each hundredth from _LOWEST to 0. NaNs do not count."""
    counts = np.zeros(1 - _LOWEST * _BINS_PER_UNIT, np.int64)
    for each in scores:
        bins = np.ceil((each[~np.isnan(each)].astype(np.float64) - _LOWEST) * _BINS_PER_UNIT)
        counts += np.bincount(np.clip(bins, 0, len(counts) - 1).astype(np.int64), minlength=len(counts))
    return counts.cumsum()
