"""Resampled test sets: intervals of scores, and the comparison of two systems on the same resampled sets."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.marks import Level, Mark
from dragoman.metrics.score import Interval, Score

FEWEST_EXAMPLES = 10
"""Number of sentences or examples below which a resampled difference says nothing about others."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of two systems on one test set.

    difference: the second score minus the first. difference_interval: the interval of the resampled differences.
    p_value: approximate probability that the choice of sentences alone causes a difference of this size. samples:
    number of resampled test sets. seed: random seed.
    """

    first: Score
    second: Score
    first_interval: Interval
    second_interval: Interval
    difference: float
    difference_interval: Interval
    p_value: float
    samples: int
    seed: int

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {**asdict(self), "first": self.first.as_json(), "second": self.second.as_json()}

    def describe(self, examples: int, unit: str = "sentences") -> str:
        """Return the difference, its interval and its significance in words. examples: size of the test set."""
        interval = self.difference_interval
        return (
            f"{self.first.name}: {self.difference:+z.2f} (95% of resampled test sets: {interval.low:+z.2f} to "
            f"{interval.high:+z.2f}), p = {self.p_value:.4f}, {self._significance(examples, unit)}"
        )

    def _significance(self, examples: int, unit: str) -> str:
        if examples < FEWEST_EXAMPLES:
            return f"too few {unit} for a significance test ({examples})"
        return "significant at 0.05" if self.p_value < 0.05 else "not significant at 0.05"

    def mark(self, examples: int, unit: str = "sentences") -> Mark:
        """Return the significance in the line that `describe` returns: good if the second system is the better one."""
        level: Level = "warning"
        if examples >= FEWEST_EXAMPLES and self.p_value < 0.05:
            level = "good" if self.second.merit > self.first.merit else "bad"
        return Mark(level, self._significance(examples, unit), self.describe(examples, unit))


def compare_resampled(
    first: Score,
    second: Score,
    first_resampled: NDArray[np.float64],
    second_resampled: NDArray[np.float64],
    *,
    samples: int,
    seed: int,
) -> Comparison:
    """Compare two systems by their scores (samples,) on the same resampled test sets, as `paired_bootstrap` does."""
    differences = second_resampled - first_resampled
    absolute = np.abs(differences)
    exceeding = int((absolute - absolute.mean() > abs(second.value - first.value)).sum())
    return Comparison(
        first=first,
        second=second,
        first_interval=interval_of(first_resampled),
        second_interval=interval_of(second_resampled),
        difference=second.value - first.value,
        difference_interval=interval_of(differences),
        p_value=(exceeding + 1) / (samples + 1) if differences.any() else 1.0,
        samples=samples,
        seed=seed,
    )


def resampled_counts(examples: int, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield the resampled test sets in blocks (S, N) of the number of times that each of N examples was drawn.

    The sets are the same as in `paired_bootstrap`. A block has at most 2¹⁸ entries, or one set if N is larger.
    """
    generator = np.random.default_rng(seed)
    size = max(1, (1 << 18) // examples)
    for start in range(0, samples, size):
        rows = min(size, samples - start)
        draws = generator.choice(examples, size=(rows, examples), replace=True)
        draws += np.arange(rows)[:, None] * examples
        yield np.bincount(draws.ravel(), minlength=rows * examples).reshape(rows, examples).astype(np.float64)


def interval_of(scores: NDArray[np.float64]) -> Interval:
    """Return the mean and the middle 95% of the scores. As in sacrebleu, a fortieth is cut off at each end."""
    ordered = np.sort(scores)
    cut = len(ordered) // 40
    return Interval(float(scores.mean()), float(ordered[cut]), float(ordered[len(ordered) - cut - 1]))
