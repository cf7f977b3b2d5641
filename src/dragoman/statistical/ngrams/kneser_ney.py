"""Interpolated Kneser–Ney smoothing, with one discount per order or three (modified)."""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from dragoman.base.log import warn
from dragoman.base.settings.config import Config
from dragoman.models.kinds.ngram import NgramTable
from dragoman.statistical.ngrams.counts import Ids, NgramCounts
from dragoman.statistical.ngrams.tables import Values, build_tables

FALLBACK = (0.5, 1.0, 1.5)
"""D1, D2 and D3+ where the counts do not determine them, as in lmplz --discount_fallback."""

SINGLE_FALLBACK = 0.5


class _KneserNeyConfig(Config):
    """Base class of both variants."""

    prune: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (),
        description="Largest number of occurrences at which n-grams of the orders 1, 2, … are dropped; the last number "
        "applies to all higher orders. [0, 0, 1] drops the n-grams from order 3 that occur once. Unigrams are never "
        "dropped, so the first number must be 0.",
    )

    @field_validator("prune")
    @classmethod
    def _check_prune(cls, prune: tuple[int, ...]) -> tuple[int, ...]:
        if prune[:1] not in ((), (0,)):
            raise ValueError("the first number must be 0, because unigrams are never dropped")
        if list(prune) != sorted(prune):
            raise ValueError("the numbers must not decrease: a stored n-gram needs its first and its last tokens")
        return prune

    def discounts(self, counts: Ids) -> "Discounts | None":
        """Return the discounts for n-grams with these adjusted counts; None if the counts do not determine them."""
        raise NotImplementedError

    @property
    def fallback(self) -> "Discounts":
        """The discounts where the counts do not determine them."""
        raise NotImplementedError

    def estimate(self, counts: NgramCounts) -> list[NgramTable]:
        """Return the tables of all orders. Logs a warning if discounts of an order are replaced by `fallback`."""
        discounts, replaced = [], []
        adjusted = adjusted_counts(counts)
        for index, values in enumerate(adjusted):
            found = self.discounts(values)
            if found is None:
                found = self.fallback
                replaced.append(index + 1)
            discounts.append(found)
        if replaced:
            orders = ", ".join(map(str, replaced))
            amounts = ", ".join(f"{value:g}" for value in dict.fromkeys(self.fallback))
            warn(
                f"the counts do not determine the Kneser–Ney discounts of order {orders}, as in small or artificial "
                f"text: the discounts {amounts} are used instead"
            )
        keep = [order.counts > self._threshold(index) for index, order in enumerate(counts.orders)]
        probabilities, backoffs = interpolate(counts, adjusted, discounts, keep)
        return build_tables(counts, probabilities, backoffs, keep if any(self.prune) else None)

    def _threshold(self, index: int) -> int:
        return self.prune[min(index, len(self.prune) - 1)] if self.prune and index else 0


class Discounts(NamedTuple):
    """The amounts that are subtracted from adjusted counts of 1, of 2, and of 3 or more."""

    one: float
    two: float
    more: float

    def of(self, counts: Ids) -> Values:
        """Return the discount of each count."""
        amounts: Values = np.array([0.0, *self])[np.minimum(counts, 3)]
        return amounts


class KneserNeyConfig(_KneserNeyConfig):
    """Interpolated Kneser–Ney smoothing with one discount per order, D = n₁ / (n₁ + 2 n₂).

    Kneser & Ney 1995; Chen & Goodman 1999, section 4.1.6. The discount is 0.5 if n₁ or n₂ is 0.
    """

    kind: Literal["kneser_ney"] = "kneser_ney"

    def discounts(self, counts: Ids) -> Discounts | None:
        """Return D for all counts; None if no n-gram has an adjusted count of 1 or of 2."""
        _, ones, twos, *_ = _count_of_counts(counts)
        return None if not ones or not twos else Discounts(*(ones / (ones + 2 * twos),) * 3)

    @property
    def fallback(self) -> Discounts:
        """0.5 for all counts."""
        return Discounts(*(SINGLE_FALLBACK,) * 3)


class ModifiedKneserNeyConfig(_KneserNeyConfig):
    """Interpolated Kneser–Ney smoothing with the discounts D1, D2 and D3+ per order, from n₁ to n₄.

    Chen & Goodman 1999, section 4.2 and equation 26; Heafield et al. 2013, with the details of KenLM's lmplz: n-grams
    that begin a text keep their counts, and pruned mass goes to the back-off weight. The discounts are 0.5, 1 and 1.5
    where n₁ to n₄ do not determine them.
    """

    kind: Literal["modified_kneser_ney"] = "modified_kneser_ney"

    def discounts(self, counts: Ids) -> Discounts | None:
        """Return D1, D2 and D3+; None if n₁, n₂ or n₃ is 0, or if a discount is not from 0 to its count."""
        n = _count_of_counts(counts)
        if not all(n[1:4]):
            return None
        ratio = n[1] / (n[1] + 2 * n[2])
        amounts = [count - (count + 1) * ratio * n[count + 1] / n[count] for count in (1, 2, 3)]
        if any(not 0 <= amount <= count for count, amount in enumerate(amounts, start=1)):
            return None
        return Discounts(*amounts)

    @property
    def fallback(self) -> Discounts:
        """The discounts of lmplz --discount_fallback."""
        return Discounts(*FALLBACK)


def adjusted_counts(counts: NgramCounts) -> list[Ids]:
    """Return the adjusted count of each n-gram of each order.

    It is the number of occurrences for the highest order and for n-grams that begin a text, and the number of distinct
    preceding tokens for others. Tokens that cannot follow have a count of 0.
    """
    adjusted = []
    for index, order in enumerate(counts.orders):
        if index == len(counts.orders) - 1:
            values = order.counts
        else:
            distinct = np.bincount(counts.orders[index + 1].suffixes, minlength=len(order.keys))
            values = np.where(order.begin_texts, order.counts, distinct)
        adjusted.append(values * counts.predictable if index == 0 else values)
    return adjusted


def interpolate(
    counts: NgramCounts, adjusted: list[Ids], discounts: list[Discounts], keep: list[NDArray[np.bool_]]
) -> tuple[list[Values], list[Values]]:
    """Return the probabilities of all orders, and the back-off weights of all orders except the highest.

    p(w | h) = (a(h w) − D) / Σ a(h ·) + b(h) · p(w | h'), where b(h) is the discounted and pruned fraction of Σ a(h ·),
    and the distribution below the unigrams is uniform.
    """
    amounts = discounts[0].of(adjusted[0])
    total = max(int(adjusted[0].sum()), 1)
    uniform = counts.predictable / counts.predictable.sum()
    weight = amounts.sum() / total if adjusted[0].any() else 1.0
    probabilities: list[Values] = [(adjusted[0] - amounts) / total + weight * uniform]
    backoffs: list[Values] = []
    for index, order in enumerate(counts.orders[1:], start=1):
        values, contexts = adjusted[index], len(counts.orders[index - 1].keys)
        amounts = np.where(keep[index], discounts[index].of(values), values)
        totals = np.bincount(order.prefixes, values, contexts)
        weights = np.bincount(order.prefixes, amounts, contexts) / np.maximum(totals, 1)
        backoffs.append(np.where(totals > 0, weights, 1.0))
        lower = probabilities[-1][order.suffixes]
        probabilities.append((values - amounts) / totals[order.prefixes] + weights[order.prefixes] * lower)
    return probabilities, backoffs


def _count_of_counts(counts: Ids) -> list[int]:
    """Return n₀ to n₄, the numbers of n-grams with these counts."""
    frequencies: list[int] = np.bincount(np.minimum(counts, 5), minlength=6)[:5].tolist()
    return frequencies
