"""Paired bootstrap resampling: a test of whether the difference between two systems is significant."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.bleu_tokenizer import AUTO, choose_tokenizer
from dragoman.metrics.registry import summed_metric
from dragoman.metrics.score import Interval, Score
from dragoman.metrics.summed import Statistics, SummedMetric

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
        if examples < FEWEST_EXAMPLES:
            verdict = f"too few {unit} for a significance test ({examples})"
        else:
            verdict = "significant at 0.05" if self.p_value < 0.05 else "not significant at 0.05"
        return (
            f"{self.first.name}: {self.difference:+z.2f} (95% of resampled test sets: {interval.low:+z.2f} to "
            f"{interval.high:+z.2f}), p = {self.p_value:.4f}, {verdict}"
        )


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    *references: Sequence[str],
    metric: str | SummedMetric = "bleu",
    tokenizer: str = AUTO,
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems on the same `samples` resampled test sets (Koehn 2004, as computed by sacrebleu).

    Let d be the difference of the scores, and d_i the difference on the i-th resampled set. The p-value is
    (1 + #{|d_i| − mean |d_j| > |d|}) / (1 + samples), as in sacrebleu's `--paired-bs`. With the same seed and number of
    samples (sacrebleu's defaults are 12345 and 1000), the result equals that of sacrebleu, with one exception: if all
    d_i are 0, the p-value is 1, whereas sacrebleu reports a significant difference between two equal systems.

    metric: a metric or its key. tokenizer: the tokeniser of BLEU, if `metric` is a key (`choose_tokenizer`). Raises
    DataError for unequal numbers of lines or empty references, and ConfigError for a metric that is not computed from
    summed sentence statistics.
    """
    if isinstance(metric, str):
        summed = summed_metric(metric).with_tokenizer(choose_tokenizer(None, references, tokenizer).report().name)
    else:
        summed = metric
    statistics = [summed.statistics(lines, *references) for lines in (first, second)]
    return compare_statistics(statistics[0], statistics[1], summed, len(references), samples=samples, seed=seed)


def compare_statistics(
    first: Statistics,
    second: Statistics,
    summed: SummedMetric,
    references: int,
    *,
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems by their statistics (N, K), as `paired_bootstrap` does. references: number per sentence."""
    scores = [summed.exact(rows.sum(0)) for rows in (first, second)]
    draws = np.random.default_rng(seed).choice(len(first), size=(samples, len(first)), replace=True)
    resampled = [summed.corpus(np.array([rows[draw].sum(0) for draw in draws])) for rows in (first, second)]
    signature = f"{summed.signature(references)}|bs:{samples}|seed:{seed}"
    named = [summed.score_of(score, signature) for score in scores]
    return compare_resampled(named[0], named[1], resampled[0], resampled[1], samples=samples, seed=seed)


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
