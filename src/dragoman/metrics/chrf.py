"""chrF2: character n-gram F-score."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from dragoman.metrics.summed import NgramMetric, Statistics


class ChrF(NgramMetric):
    """chrF2 (0 to 100), computed by sacrebleu from character 1- to 6-grams without blanks (Popović 2015)."""

    key, name, better, orders = "chrf", "chrF2", "higher", 6
    _beta: ClassVar[int] = 2

    def sacrebleu(self) -> CHRF:
        """Return sacrebleu's metric with its defaults."""
        return CHRF()

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `CHRF().corpus_score`."""
        parts = sums.reshape(*sums.shape[:-1], self.orders, 3).astype(np.float64)
        hypothesis, reference, matches = parts[..., 0], parts[..., 1], parts[..., 2]
        there = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(there.sum(-1), 1)
        precision = (np.where(there, matches, 0) / np.where(there, hypothesis, 1)).sum(-1) / orders
        recall = (np.where(there, matches, 0) / np.where(there, reference, 1)).sum(-1) / orders
        weighted = self._beta**2 * precision + recall
        scores = 100 * (1 + self._beta**2) * precision * recall / np.where(weighted > 0, weighted, 1)
        return np.asarray(np.where(weighted > 0, scores, 0.0))

    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `CHRF().sentence_score`."""
        return self.corpus(statistics)

    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Count the character n-grams of a text."""
        orders: list[Counter[str]] = extract_all_char_ngrams(text, self.orders)
        return {(order, gram): count for order, found in enumerate(orders, 1) for gram, count in found.items()}

    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Return three counts per order: n-grams of the hypothesis (0 if the reference has none), of the reference, and
        in common.
        """
        of_reference = np.broadcast_to(lengths[None], matches.shape)
        of_hypothesis = np.where(of_reference > 0, counts[:, None], 0)
        return np.stack([of_hypothesis, of_reference, matches], -1).reshape(*matches.shape[:2], -1)
