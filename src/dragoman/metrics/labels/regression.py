"""Metrics of regression: Pearson and Spearman correlation, mean absolute error, and mean squared error."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.metrics.labels.classification import check_equal_lengths

Floats = NDArray[np.float64]

_SMALLEST_VARIANCE = 1e-12
"""Variances below this fraction of the variance of the whole test set are rounding errors of a constant."""


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float | None:
    """Return the Pearson correlation (−1 to 1), or None if the correct values or the predictions are constant.

    Raises DataError if the numbers of values differ or are 0, or if a value is not finite.
    """
    values = as_values(gold, predicted)
    return _value(_Correlation(*values), len(gold))


def spearman(gold: Sequence[float], predicted: Sequence[float]) -> float | None:
    """Return the Spearman correlation (−1 to 1), in which tied values have their average rank.

    The result is None, and errors are raised, as in `pearson`.
    """
    values = as_values(gold, predicted)
    return _value(_RankCorrelation(*values), len(gold))


def mean_absolute_error(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Return the mean of |gold − predicted|. Raises DataError as `pearson` does."""
    values = as_values(gold, predicted)
    return float(np.abs(values[0] - values[1]).mean())


def mean_squared_error(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Return the mean of (gold − predicted)². Raises DataError as `pearson` does."""
    values = as_values(gold, predicted)
    return float(((values[0] - values[1]) ** 2).mean())


def as_values(gold: Sequence[float], predicted: Sequence[float]) -> tuple[Floats, Floats]:
    """Return both as arrays (N,). Raises DataError if the lengths differ or are 0, or if a value is not finite."""
    check_equal_lengths(gold, predicted)
    arrays = np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
    for array, name in zip(arrays, ("correct value", "prediction"), strict=True):
        if not np.isfinite(array).all():
            index = int(np.flatnonzero(~np.isfinite(array))[0])
            raise DataError(f"the {name} {index + 1} is {array[index]}, which is not a finite number")
    return arrays


def is_constant(values: Floats) -> bool:
    """Return whether all values are equal."""
    return bool((values == values[0]).all())


class ResampledRegression:
    """The metrics of resampled test sets. A correlation that is undefined is NaN."""

    def __init__(self, gold: Floats, predicted: Floats) -> None:
        """gold, predicted: (N,) finite values."""
        self._pearson, self._spearman = _Correlation(gold, predicted), _RankCorrelation(gold, predicted)
        self._errors = np.stack([np.abs(gold - predicted), (gold - predicted) ** 2], 1)

    def __call__(self, counts: Floats) -> dict[str, Floats]:
        """Return the values (S,), by key. counts: (S, N) number of times that each example was drawn."""
        errors = counts @ self._errors / counts.sum(1, keepdims=True)
        return {
            "pearson": self._pearson(counts),
            "spearman": self._spearman(counts),
            "mae": errors[:, 0],
            "mse": errors[:, 1],
        }


class _Correlation:
    """Pearson correlation of weighted examples, computed from sums of the standardised values and their products."""

    def __init__(self, first: Floats, second: Floats) -> None:
        x, y = _standardise(first), _standardise(second)
        self._moments = np.stack([x, y, x * x, y * y, x * y], 1)  # (N, 5)

    def __call__(self, counts: Floats) -> Floats:
        """Return the correlation (S,) of each test set. counts: (S, N)."""
        x, y, xx, yy, xy = (counts @ self._moments / counts.sum(1, keepdims=True)).T
        return _correlate(xy - x * y, xx - x * x, yy - y * y)


class _RankCorrelation:
    """Pearson correlation of the ranks, which depend on the resampled test set."""

    def __init__(self, first: Floats, second: Floats) -> None:
        self._sides = [np.unique(side, return_inverse=True, return_counts=True)[1:] for side in (first, second)]

    def __call__(self, counts: Floats) -> Floats:
        """Return the correlation (S,) of each test set. counts: (S, N)."""
        total = counts.sum(1, keepdims=True)
        x, y = (self._centred_ranks(counts, *side) for side in self._sides)  # (S, N) each
        weighted = counts * x
        scale = total[:, 0] ** 3  # ranks are proportional to the number of examples
        return _correlate(
            np.einsum("sn,sn->s", weighted, y) / scale,
            np.einsum("sn,sn->s", weighted, x) / scale,
            np.einsum("sn,sn->s", counts * y, y) / scale,
        )

    @staticmethod
    def _centred_ranks(counts: Floats, groups: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
        """Return the ranks (S, N) minus their mean. groups: (N,) index of each value; sizes: examples per value."""
        order = np.argsort(groups, kind="stable")
        starts = np.cumsum(sizes) - sizes
        weights = np.add.reduceat(counts[:, order], starts, axis=1)  # (S, G)
        ends = np.cumsum(weights, 1)
        middles = ends - (weights - 1) / 2  # mean of the ranks ends − weights + 1, …, ends
        return np.asarray((middles - (ends[:, -1:] + 1) / 2)[:, groups])


def _standardise(values: Floats) -> Floats:
    centred = values - values.mean()
    scale = np.abs(centred).max()
    centred = centred / scale if scale > 0 else centred
    deviation = centred.std()
    return centred / deviation if not is_constant(values) and deviation > 0 else np.zeros_like(values)


def _correlate(covariance: Floats, first: Floats, second: Floats) -> Floats:
    """Return covariance / √(first · second), or NaN if one of the variances is 0 except for rounding."""
    defined = (first > _SMALLEST_VARIANCE) & (second > _SMALLEST_VARIANCE)
    product = np.where(defined, first * second, 1)
    return np.where(defined, np.clip(covariance / np.sqrt(product), -1, 1), np.nan)


def _value(correlation: Callable[[Floats], Floats], examples: int) -> float | None:
    value = float(correlation(np.ones((1, examples)))[0])
    return None if np.isnan(value) else value
