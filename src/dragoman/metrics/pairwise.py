"""Sentence scores of every text of a list against every other one, from n-grams that are counted once a text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.statistics import Statistics, SummedMetric


def pairwise(texts: Sequence[str], metric: SummedMetric) -> NDArray[np.float64]:
    """(N, N): the sentence score (0 to 100) of text i as hypothesis with text j as its reference.

    The same as N² calls of sacrebleu's `sentence_score`.
    """
    grams = [metric.grams(text) for text in texts]
    known = sorted({gram[0] for each in grams for gram in each})
    numbers: dict[object, int] = {}
    for order in known:  # n-grams of one order side by side
        for each in grams:
            for gram in each:
                if gram[0] == order:
                    numbers.setdefault(gram, len(numbers))
    orders = np.zeros(len(numbers), np.int64)
    counts = np.zeros((len(texts), len(numbers)), np.int32)
    for row, each in enumerate(grams):
        for gram, count in each.items():
            counts[row, numbers[gram]] = count
            orders[numbers[gram]] = gram[0] - 1
    lengths = _by_order(counts, orders, metric.orders)
    matches = np.zeros((len(texts), len(texts), metric.orders), np.int64)
    for row in range(len(texts)):
        its = np.flatnonzero(counts[row])
        common = np.minimum(counts[row, its], counts[:, its])
        matches[row] = _by_order(common, orders[its], metric.orders)
    return metric.sentences(metric.paired(lengths, lengths, matches))


def _by_order(counts: NDArray[np.int32], orders: NDArray[np.int64], most: int) -> Statistics:
    """(N, most): sums of the counts (N, V) over n-grams of each order; orders: (V,), from 0, ascending."""
    sums = np.concatenate([np.zeros((len(counts), 1), np.int64), counts.cumsum(1, dtype=np.int64)], 1)
    return np.asarray(np.diff(sums[:, np.searchsorted(orders, np.arange(most + 1))], axis=1))
