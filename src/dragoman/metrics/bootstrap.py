"""Paired bootstrap resampling: is the difference between two systems more than chance in the test set?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.metric import Score
from dragoman.metrics.registry import summed_metric
from dragoman.metrics.summed import SummedMetric


@dataclass(frozen=True)
class Interval:
    """The middle 95% of the scores of the resampled test sets, with their mean."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Two systems on one test set.

    difference: second minus first, with the interval of the resampled differences. p_value: approximate probability of
    a difference of this size by the choice of sentences alone. samples, seed: of the resampling.
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


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    *references: Sequence[str],
    metric: str | SummedMetric = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Koehn 2004, as sacrebleu computes it: both systems are scored on the same `samples` resampled test sets.

    With d the difference and d_i those of the resampled sets, the p-value is (1 + #{|d_i| − mean |d_j| > |d|}) /
    (1 + samples), as in sacrebleu's `--paired-bs`: the same seed and samples (12345 and 1000 are its defaults) give its
    figure. One exception: if no d_i differs from 0 it is 1, while sacrebleu calls two equal systems different.
    metric: one, or its key. Raises DataError for unequal numbers of lines and empty references, ConfigError for a
    metric whose statistics do not add up over sentences.
    """
    measure = summed_metric(metric) if isinstance(metric, str) else metric
    statistics = [measure.statistics(lines, *references) for lines in (first, second)]  # (N, K) each
    scores = [measure.exact(rows.sum(0)) for rows in statistics]
    draws = np.random.default_rng(seed).choice(len(first), size=(samples, len(first)), replace=True)
    resampled = [measure.corpus(np.array([rows[draw].sum(0) for draw in draws])) for rows in statistics]  # (samples,)
    differences = resampled[1] - resampled[0]
    absolute = np.abs(differences)
    chance = int((absolute - absolute.mean() > abs(scores[1] - scores[0])).sum())
    signature = f"{measure.signature(len(references))}|bs:{samples}|seed:{seed}"
    return Comparison(
        first=Score(measure.name, scores[0], signature),
        second=Score(measure.name, scores[1], signature),
        first_interval=_interval(resampled[0]),
        second_interval=_interval(resampled[1]),
        difference=scores[1] - scores[0],
        difference_interval=_interval(differences),
        p_value=(chance + 1) / (samples + 1) if differences.any() else 1.0,
        samples=samples,
        seed=seed,
    )


def _interval(scores: NDArray[np.float64]) -> Interval:
    """As in sacrebleu, a fortieth is cut off at each end."""
    ordered = np.sort(scores)
    cut = len(ordered) // 40
    return Interval(float(scores.mean()), float(ordered[cut]), float(ordered[len(ordered) - cut - 1]))
