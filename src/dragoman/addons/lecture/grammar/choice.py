"""Random choices that depend only on the seed, not on the platform or the Python version."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choice:
    """Makes random choices with `Random.random`, whose sequence for a seed is the same in all Python versions."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def chance(self, probability: float) -> bool:
        """Return True with probability `probability`."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`, drawn uniformly."""
        return options[int(self._random() * len(options))]

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included, drawn uniformly."""
        return low + int(self._random() * (high - low + 1))

    def weighted(self, **weights: float) -> str:
        """Return a key with probability proportional to its weight."""
        point = self._random() * sum(weights.values())
        for key, weight in weights.items():
            point -= weight
            if point < 0:
                return key
        return key
