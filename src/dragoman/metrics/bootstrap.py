"""Paired bootstrap resampling: a test of whether the difference between two systems is significant."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.metric import Score
from dragoman.metrics.registry import summed_metric
from dragoman.metrics.summed import SummedMetric


@dataclass(frozen=True)
class Interval:
    """The mean score on the resampled test sets, and the range of the middle 95% of the scores."""

    mean: float
    low: float
    high: float


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


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    *references: Sequence[str],
    metric: str | SummedMetric = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems on the same `samples` resampled test sets (Koehn 2004, as computed by sacrebleu).

    Let d be the difference of the scores, and d_i the difference on the i-th resampled set. The p-value is
    (1 + #{|d_i| − mean |d_j| > |d|}) / (1 + samples), as in sacrebleu's `--paired-bs`. With the same seed and number of
    samples (sacrebleu's defaults are 12345 and 1000), the result equals that of sacrebleu, with one exception: if all
    d_i are 0, the p-value is 1, whereas sacrebleu reports a significant difference between two equal systems.

    metric: a metric or its key. Raises DataError for unequal numbers of lines or empty references, and ConfigError for
    a metric that is not computed from summed sentence statistics.
    """
    measure = summed_metric(metric) if isinstance(metric, str) else metric
    statistics = [measure.statistics(lines, *references) for lines in (first, second)]  # (N, K) each
    scores = [measure.exact(rows.sum(0)) for rows in statistics]
    draws = np.random.default_rng(seed).choice(len(first), size=(samples, len(first)), replace=True)
    resampled = [measure.corpus(np.array([rows[draw].sum(0) for draw in draws])) for rows in statistics]  # (samples,)
    differences = resampled[1] - resampled[0]
    absolute = np.abs(differences)
    exceeding = int((absolute - absolute.mean() > abs(scores[1] - scores[0])).sum())
    signature = f"{measure.signature(len(references))}|bs:{samples}|seed:{seed}"
    return Comparison(
        first=Score(measure.name, scores[0], signature),
        second=Score(measure.name, scores[1], signature),
        first_interval=_interval(resampled[0]),
        second_interval=_interval(resampled[1]),
        difference=scores[1] - scores[0],
        difference_interval=_interval(differences),
        p_value=(exceeding + 1) / (samples + 1) if differences.any() else 1.0,
        samples=samples,
        seed=seed,
    )


def _interval(scores: NDArray[np.float64]) -> Interval:
    """Return the mean and the middle 95% of the scores. As in sacrebleu, a fortieth is cut off at each end."""
    ordered = np.sort(scores)
    cut = len(ordered) // 40
    return Interval(float(scores.mean()), float(ordered[cut]), float(ordered[len(ordered) - cut - 1]))
