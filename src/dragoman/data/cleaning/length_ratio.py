"""The usual length ratio of the pairs of a corpus, which wrong pairs in the corpus hardly affect."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALLOWANCE = 10.0
"""Number of characters added to the length of each side before the ratio is computed, so that short pairs (`Hi.` –
`Grüß Gott!`) are kept. With this number, the log ratios of short and long translations have the same deviation."""

STRICT = 2.2
"""Limit on the ratio of a pair relative to the usual ratio, in a corpus with many pairs beyond this limit. The log
ratios of translations had standard deviations of 0.1 to 0.3 in all measured corpora."""

ORDINARY_SHARE = 0.01
"""Fraction of the pairs of a good corpus, and at least one pair, that may be beyond STRICT, for example because a
translation is free."""

_BINS_PER_UNIT = 200
_BINS = 16 * _BINS_PER_UNIT

Lengths = Callable[[], Iterable[NDArray[np.integer]]]
"""Returns the lengths of pairs in characters, as arrays (2, n)."""


class UsualRatio(NamedTuple):
    """The usual length ratio of a corpus.

    usual: the median number of target characters divided by the median number of source characters. It does not depend
    on which source is paired with which target, so that even a corpus of wrong pairs has the right value. many: whether
    more pairs than in a good corpus are beyond STRICT, because the corpus contains wrong pairs.
    """

    usual: float = 1.0
    many: bool = False

    def deviations(self, lengths: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the factors, at least 1, by which ratios differ from the usual ratio. lengths: (2, n) characters.

        Both sides are scaled by the square root of the usual ratio, so that translations have the same length.
        """
        root = math.sqrt(self.usual)
        source, target = np.log(lengths * np.array([[root], [1 / root]]) + ALLOWANCE)
        factors: NDArray[np.float64] = np.exp(np.abs(target - source))
        return factors

    def limit(self, max_ratio: float) -> float:
        """Return the largest permitted deviation: `max_ratio`, or at most STRICT if there are many wrong pairs."""
        return min(max_ratio, STRICT) if self.many else max_ratio

    @classmethod
    def estimate(cls, lengths: Lengths) -> "UsualRatio":
        """Estimate the ratio in two passes over the lengths. Pairs with an empty side are ignored."""
        counts = np.zeros((2, _BINS), np.int64)
        for each in lengths():
            logs = np.log(each[:, (each > 0).all(0)])
            bins = np.minimum((logs * _BINS_PER_UNIT).astype(np.int64), _BINS - 1)
            counts += [np.bincount(side, minlength=_BINS) for side in bins]
        if not counts.any():
            return cls()
        source, target = (np.searchsorted(side, side[-1] / 2) for side in counts.cumsum(1))
        ratio = cls(math.exp(float(target - source) / _BINS_PER_UNIT))
        beyond = sum(int((ratio.deviations(each) > STRICT).sum()) for each in lengths())
        return ratio._replace(many=beyond > max(1.0, ORDINARY_SHARE * float(counts[0].sum())))
