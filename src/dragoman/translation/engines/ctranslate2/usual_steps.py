"""`UsualSteps`: how many steps the next search gets."""

from math import ceil

_AGAIN = 0.08
"""The share of searches that shall be too short. With fewer, all others would take more steps than they need: where the
lengths of translations vary by a quarter, this share costs least."""

_RATE = 0.1
"""By how many steps the margin moves at most, after one search of a batch."""


class UsualSteps:
    """After how many steps a beam search is usually decided, learned from the searches before. It changes speed alone.

    The mean length of translations, by that of sources, and a margin that follows the searches for which it was too few
    (a quantile by stochastic approximation: Robbins & Monro 1951), until they are the share `_AGAIN`.
    """

    def __init__(self) -> None:
        self._read, self._written, self._margin = 100.0, 100.0, 5.0

    def of(self, source: int) -> int:
        """For a source of so many tokens, its end counted."""
        return max(1, ceil(source * self._written / self._read + self._margin))

    def decided(self, source: int, written: int) -> None:
        """They were enough for a source and its best translation of so many tokens, ends counted."""
        self._read, self._written = self._read + source, self._written + written
        self._margin -= _AGAIN * _RATE

    def undecided(self) -> None:
        """They were too few."""
        self._margin += (1 - _AGAIN) * _RATE
