"""`compare_seeds`: the comparison of two systems, each of which was trained with several random seeds.

Two kinds of luck affect a difference: the choice of the test sentences, and the seeds of the training. The squared
standard error of the difference of the means over seeds is

    SE² = SE²(sentences) + s₁²/n₁ + s₂²/n₂,

where SE(sentences) is the standard deviation of the difference on resampled test sets (Koehn 2004), and s is the
standard deviation of the scores of the n seeds of a system. The difference divided by SE is compared with Student's
distribution, whose degrees of freedom are those of Welch (1947) and Satterthwaite (1946).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.resampling import resampled_counts
from dragoman.metrics.score import Interval
from dragoman.metrics.summed import Statistics, SummedMetric

_GRID = 40_000
"""Number of steps of the integral of Student's distribution. Its error is below 10⁻⁵, and with ν ≥ 2 below 10⁻⁶."""


@dataclass(frozen=True)
class SeedComparison:
    """The difference of two systems, as the second mean minus the first.

    interval: 95% confidence interval of the difference. p_value: probability of a difference of this size if neither
    system is better. seeds: number of seeds of each system; if one of them is 1, nothing is known about the luck of
    its training, and interval and p-value hold for these two models only. freedom: degrees of freedom.
    """

    difference: float
    interval: Interval
    p_value: float
    seeds: tuple[int, int]
    freedom: float

    @property
    def includes_training(self) -> bool:
        """Whether the luck of training is included, so that the result holds for the systems and not for two models."""
        return min(self.seeds) > 1

    @property
    def is_significant(self) -> bool:
        """Whether the systems differ significantly, at 0.05. False if a system has one seed only."""
        return self.includes_training and self.p_value < 0.05


@dataclass(frozen=True)
class SeedScores:
    """The scores of a system by one metric.

    values: (n,), one per seed. resampled: (n, S), those of each seed on S resampled test sets, which are the same for
    all systems.
    """

    values: NDArray[np.float64]
    resampled: NDArray[np.float64]


def compare_seeds(
    first: Sequence[Statistics],
    second: Sequence[Statistics],
    metric: SummedMetric,
    *,
    samples: int = 1000,
    seed: int = 12345,
) -> SeedComparison:
    """Compare two systems by the statistics (N, K) of the translations of each of their seeds (see the module).

    samples, seed: number of resampled test sets, and the random seed of their choice.
    """
    scores = [
        SeedScores(np.array([metric.exact(rows.sum(0)) for rows in system]), _resampled(system, metric, samples, seed))
        for system in (first, second)
    ]
    return compare_seed_scores(scores[0], scores[1], len(first[0]))


def compare_seed_scores(first: SeedScores, second: SeedScores, examples: int) -> SeedComparison:
    """Compare two systems by the scores of each of their seeds (see the module). examples: size of the test set."""
    difference = float(second.values.mean() - first.values.mean())
    variances = [float((second.resampled.mean(0) - first.resampled.mean(0)).var(ddof=1))]
    freedoms = [max(examples - 1, 1)]
    for scores in (first.values, second.values):
        if len(scores) > 1:
            variances.append(float(scores.var(ddof=1)) / len(scores))
            freedoms.append(len(scores) - 1)
    variance, seeds = sum(variances), (len(first.values), len(second.values))
    if variance == 0:
        certain = Interval(difference, difference, difference)
        return SeedComparison(difference, certain, float(difference == 0), seeds, np.inf)
    freedom = variance**2 / sum(each**2 / one for each, one in zip(variances, freedoms, strict=True))
    error = variance**0.5
    half = student_quantile(0.975, freedom) * error
    return SeedComparison(
        difference,
        Interval(difference, difference - half, difference + half),
        student_tails(abs(difference) / error, freedom),
        seeds,
        freedom,
    )


def _resampled(system: Sequence[Statistics], metric: SummedMetric, samples: int, seed: int) -> NDArray[np.float64]:
    """Return the score of each seed on each resampled test set (n, samples)."""
    scores = []
    for rows in system:
        statistics, sets = rows.astype(np.float64), resampled_counts(len(rows), samples, seed)
        scores.append(np.concatenate([metric.corpus(counts @ statistics) for counts in sets]))
    return np.stack(scores)


def _student_cumulative(freedom: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return angles θ from 0 to π/2, and the probability of |T| ≤ √ν tan θ at each of them.

    The density of θ is proportional to cos^(ν−1) θ. freedom: ν, at least 1.
    """
    angles = np.linspace(0.0, np.pi / 2, _GRID + 1)
    density = np.cos(angles) ** (freedom - 1)
    sums = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return angles, sums / sums[-1]


def student_tails(value: float, freedom: float) -> float:
    """Return the probability that Student's T with these degrees of freedom is at least as far from 0 as `value`."""
    angles, inside = _student_cumulative(freedom)
    return float(1 - np.interp(np.arctan(abs(value) / freedom**0.5), angles, inside))


def student_quantile(probability: float, freedom: float) -> float:
    """Return the value below which Student's T is with this probability, from 0.5 to 1."""
    angles, inside = _student_cumulative(freedom)
    return float(freedom**0.5 * np.tan(np.interp(2 * probability - 1, inside, angles)))
