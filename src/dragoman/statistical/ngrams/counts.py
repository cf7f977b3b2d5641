"""`count_ngrams` counts the n-grams of texts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.text.symbols import BOS, PAD

Ids = NDArray[np.int64]


class OrderCounts(NamedTuple):
    """The N distinct n-grams of one order k, sorted by their tokens.

    keys: (N,) int64, as in `models.kinds.ngram.NgramTable`. counts: (N,) int64, number of occurrences.
    prefixes, suffixes: (N,) int64, numbers of the first and of the last k − 1 tokens among the n-grams of order k − 1;
    empty for order 1. begin_texts: (N,) bool, whether the first token is BOS.
    """

    keys: Ids
    counts: Ids
    prefixes: Ids
    suffixes: Ids
    begin_texts: NDArray[np.bool_]


class NgramCounts(NamedTuple):
    """The counts of all orders from 1 to n. Order 1 contains every token of the vocabulary, in the order of the ids.

    predictable: (V,) bool, True for the tokens that can follow: all tokens except PAD, BOS and tags.
    """

    orders: tuple[OrderCounts, ...]
    predictable: NDArray[np.bool_]

    @property
    def vocabulary(self) -> int:
        """V, the number of tokens, including those that cannot follow."""
        return len(self.predictable)


def count_ngrams(tokens: Ids, order: int, vocabulary: int, tags: int = 0) -> NgramCounts:
    """Count the n-grams of the orders 1 to `order`. No n-gram extends beyond a text.

    tokens: (T,) int64, all texts, each with BOS before and EOS after it. vocabulary: V. tags: number of tags, the last
    entries of the vocabulary. The counts of a corpus of T tokens need about 100 · T bytes for order 5.
    """
    tokens = np.asarray(tokens, np.int64)
    predictable = np.ones(vocabulary, np.bool_)
    predictable[[PAD, BOS]] = False
    predictable[vocabulary - tags :] = False
    empty = np.zeros(0, np.int64)
    all_ids = np.arange(vocabulary)
    orders = [OrderCounts(all_ids, np.bincount(tokens, minlength=vocabulary), empty, empty, all_ids == BOS)]
    ends = np.arange(len(tokens))  # positions of the last tokens of all n-grams of the previous order
    numbers = tokens  # the numbers of these n-grams
    for _ in range(1, order):
        continued = ends[:-1] + 1 == ends[1:]  # the n-gram that ends one token later is of the same text
        prefixes, suffixes = numbers[:-1][continued], numbers[1:][continued]
        ends = ends[1:][continued]
        inside = tokens[ends] != BOS
        prefixes, suffixes, ends = prefixes[inside], suffixes[inside], ends[inside]
        keys, numbers, counts = np.unique(prefixes * vocabulary + tokens[ends], return_inverse=True, return_counts=True)
        numbers = numbers.reshape(-1)
        suffix_numbers = np.empty(len(keys), np.int64)
        suffix_numbers[numbers] = suffixes
        prefix_numbers = keys // vocabulary
        begin_texts = orders[-1].begin_texts[prefix_numbers]
        orders.append(OrderCounts(keys, counts, prefix_numbers, suffix_numbers, begin_texts))
    return NgramCounts(tuple(orders), predictable)
