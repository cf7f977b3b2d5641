"""Paired bootstrap resampling: a test of whether the difference between two systems is significant."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.metrics.bleu_tokenizer import AUTO, choose_tokenizer
from dragoman.metrics.registry import summed_metric
from dragoman.metrics.resampling import (
    FEWEST_EXAMPLES,
    Comparison,
    compare_resampled,
    interval_of,
    resampled_counts,
)
from dragoman.metrics.score import Score
from dragoman.metrics.summed import Statistics, SummedMetric

_SAMPLES, _SEED = 1000, 12345


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    *references: Sequence[str],
    metric: str | SummedMetric = "bleu",
    tokenizer: str = AUTO,
    samples: int = _SAMPLES,
    seed: int = _SEED,
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
    samples: int = _SAMPLES,
    seed: int = _SEED,
) -> Comparison:
    """Compare two systems by their statistics (N, K), as `paired_bootstrap` does. references: number per sentence."""
    scores = [summed.exact(rows.sum(0)) for rows in (first, second)]
    draws = np.random.default_rng(seed).choice(len(first), size=(samples, len(first)), replace=True)
    resampled = [summed.corpus(np.array([rows[draw].sum(0) for draw in draws])) for rows in (first, second)]
    signature = f"{summed.signature(references)}|bs:{samples}|seed:{seed}"
    named = [summed.score_of(score, signature) for score in scores]
    return compare_resampled(named[0], named[1], resampled[0], resampled[1], samples=samples, seed=seed)


def with_interval(score: Score, statistics: Statistics, summed: SummedMetric) -> Score:
    """Return a score with the interval of its values on resampled test sets, unless there are too few sentences.

    statistics: of the sentences, (N, K). The sets are those of `paired_bootstrap` with its defaults.
    """
    if len(statistics) < FEWEST_EXAMPLES:
        return score
    counts = resampled_counts(len(statistics), _SAMPLES, _SEED)
    sums = np.concatenate([np.rint(each @ statistics) for each in counts])
    return replace(score, interval=interval_of(summed.corpus(sums.astype(statistics.dtype))))
