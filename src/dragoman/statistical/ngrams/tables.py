"""Conversions from probabilities and back-off weights of n-grams to the tables of a model."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.models.kinds.ngram import LOG_ZERO, NgramTable
from dragoman.statistical.ngrams.counts import NgramCounts

Values = NDArray[np.float64]


def log10(values: Values) -> Values:
    """Return log₁₀ of values from 0 to 1, and `LOG_ZERO` for 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log10(np.minimum(values, 1.0)), LOG_ZERO)


def build_tables(
    counts: NgramCounts,
    probabilities: Sequence[Values],
    backoffs: Sequence[Values],
    keep: Sequence[NDArray[np.bool_]] | None = None,
) -> list[NgramTable]:
    """Return the tables of all orders, in float64.

    probabilities: p(last token | preceding tokens) of each n-gram of each order. backoffs: the weight b(h) of each
    n-gram as a context, for all orders except the highest. keep: whether each n-gram is stored; None: all. If an n-gram
    is stored, its first tokens must be stored too.
    """
    tables = []
    numbers = np.arange(counts.vocabulary)  # the new number of each n-gram of the previous order
    for index, order in enumerate(counts.orders):
        kept = np.ones(len(order.keys), np.bool_) if keep is None or index == 0 else keep[index]
        keys = order.keys[kept]
        if index:
            keys = numbers[order.prefixes[kept]] * counts.vocabulary + keys % counts.vocabulary
        numbers = np.cumsum(kept) - 1
        backoff = torch.from_numpy(log10(backoffs[index][kept])) if index < len(backoffs) else None
        tables.append(NgramTable(torch.from_numpy(keys), torch.from_numpy(log10(probabilities[index][kept])), backoff))
    return tables
