"""chrF2 and chrF2++: F-scores of character n-grams, and of words beside them."""

from collections import Counter
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.chrf import CHRF

from dragoman.metrics.summed import NgramMetric, Statistics


class ChrF(NgramMetric):
    """chrF2 (0 to 100), computed by sacrebleu from character n-grams of orders 1 to 6 without blanks (Popović 2015)."""

    key, name, better, orders = "chrf", "chrF2", "higher", 6
    _beta: ClassVar[int] = 2
    _word_order: ClassVar[int] = 0

    def sacrebleu(self) -> CHRF:
        """Return sacrebleu's metric with its defaults, apart from the orders."""
        return CHRF(word_order=self._word_order)

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `CHRF().corpus_score`."""
        parts = sums.reshape(*sums.shape[:-1], self.orders, 3).astype(np.float64)
        hypothesis, reference, matches = parts[..., 0], parts[..., 1], parts[..., 2]
        has_order = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(has_order.sum(-1), 1)
        precision = (np.where(has_order, matches, 0) / np.where(has_order, hypothesis, 1)).sum(-1) / orders
        recall = (np.where(has_order, matches, 0) / np.where(has_order, reference, 1)).sum(-1) / orders
        weighted = self._beta**2 * precision + recall
        scores = 100 * (1 + self._beta**2) * precision * recall / np.where(weighted > 0, weighted, 1)
        return np.asarray(np.where(weighted > 0, scores, 0.0))

    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `CHRF().sentence_score`."""
        return self.corpus(statistics)

    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Count the n-grams of a text: those of characters, followed by those of words."""
        by_order: list[Counter[Hashable]] = self._counting._extract_reference_info([text])["ref_ngrams"][0]
        return {(order, gram): count for order, counts in enumerate(by_order, 1) for gram, count in counts.items()}

    @cached_property
    def _counting(self) -> CHRF:
        return self.sacrebleu()

    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Return three counts per order: n-grams of the hypothesis, of the reference, and in common.

        The first count is 0 if the reference has no n-grams of the order.
        """
        reference_counts = np.broadcast_to(lengths[None], matches.shape)
        hypothesis_counts = np.where(reference_counts > 0, counts[:, None], 0)
        return np.stack([hypothesis_counts, reference_counts, matches], -1).reshape(*matches.shape[:2], -1)


class ChrFPlusPlus(ChrF):
    """chrF2++ (0 to 100), which also counts words and word bigrams, as the reports of FLORES do (Popović 2017)."""

    key, name, orders, by_default = "chrf++", "chrF2++", 8, False
    _word_order = 2
