"""Maximum likelihood and add-k smoothing: relative frequencies of the tokens after each context."""

from typing import Literal

import numpy as np
from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.models.kinds.ngram import NgramTable
from dragoman.statistical.ngrams.counts import NgramCounts
from dragoman.statistical.ngrams.tables import Values, build_tables


class MaximumLikelihoodConfig(Config):
    """Maximum likelihood: p(w | h) = c(h w) / c(h ·). Other tokens have the probability 0, stored as 10⁻⁹⁹.

    A context that does not occur is shortened until it occurs.
    """

    kind: Literal["maximum_likelihood"] = "maximum_likelihood"

    def estimate(self, counts: NgramCounts) -> list[NgramTable]:
        """Return the tables of all orders."""
        unigrams = counts.orders[0].counts * counts.predictable
        probabilities: list[Values] = [unigrams / max(int(unigrams.sum()), 1)]
        backoffs: list[Values] = []
        for order, previous in zip(counts.orders[1:], counts.orders, strict=False):
            totals = np.bincount(order.prefixes, order.counts, len(previous.keys))
            probabilities.append(order.counts / totals[order.prefixes])
            backoffs.append(np.where(totals > 0, 0.0, 1.0))
        return build_tables(counts, probabilities, backoffs)


class AddKConfig(Config):
    """Add-k smoothing: p(w | h) = (c(h w) + k) / (c(h ·) + k · V). k = 1 is Laplace's rule (Lidstone 1920).

    V is the number of tokens that can follow. The context is always n − 1 tokens, or fewer at the beginning of a text;
    after a context that does not occur, all tokens are equally likely.
    """

    kind: Literal["add_k"] = "add_k"
    k: float = Field(1.0, gt=0, allow_inf_nan=False, description="k (no unit), which is added to every count.")

    def estimate(self, counts: NgramCounts) -> list[NgramTable]:
        """Return the tables of all orders.

        An n-gram shorter than n that does not begin a text is stored only as a context, with the uniform probability.
        """
        size = int(counts.predictable.sum())
        uniform = counts.predictable / size
        unigrams = counts.orders[0].counts * counts.predictable
        if len(counts.orders) == 1:
            return build_tables(
                counts, [(unigrams + self.k * counts.predictable) / (unigrams.sum() + self.k * size)], []
            )
        probabilities: list[Values] = [uniform]
        backoffs: list[Values] = []
        for index, (order, previous) in enumerate(zip(counts.orders[1:], counts.orders, strict=False), start=2):
            is_full = index == len(counts.orders)
            totals = np.bincount(order.prefixes, order.counts, len(previous.keys))
            weights = self.k * size / (totals + self.k * size)
            backoffs.append(np.where((totals > 0) & (previous.begin_texts | is_full), weights, 1.0))
            smoothed = (order.counts + self.k) / (totals[order.prefixes] + self.k * size)
            probabilities.append(np.where(order.begin_texts | is_full, smoothed, 1.0 / size))
        return build_tables(counts, probabilities, backoffs)
