"""Random choices that are the same for a seed on every platform and Python version."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choice:
    """Draws from `random`; only `Random.random` is used, whose sequence Python promises to keep."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def chance(self, probability: float) -> bool:
        """True with `probability`."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, all equally likely."""
        return options[int(self._random() * len(options))]

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._random() * (high - low + 1))

    def weighted(self, **weights: float) -> str:
        """A key, as likely as its weight."""
        point = self._random() * sum(weights.values())
        for key, weight in weights.items():
            point -= weight
            if point < 0:
                return key
        return key
