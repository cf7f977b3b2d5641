"""`SummedMetric` and `NgramMetric`: corpus metrics that are computed from sums of sentence statistics."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric as SacreMetric

from dragoman.metrics.metric import Metric, Outputs, check_lines

Statistics = NDArray[Any]
"""(…, K), the K numbers that a metric keeps per sentence; those of a corpus are their sums."""


class SummedMetric(Metric):
    """A metric of sacrebleu. Its statistics add up over sentences, so test sets can be resampled cheaply."""

    @abstractmethod
    def sacrebleu(self) -> SacreMetric:
        """A new instance of sacrebleu's class, which keeps state between calls."""

    @abstractmethod
    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """(…): the score (0 to 100) of corpora with these sums (…, K)."""

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """(N, K) of N sentences. Raises DataError for unequal numbers of lines and empty references."""
        check_lines(hypotheses, references)
        return np.array(self.sacrebleu()._extract_corpus_statistics(hypotheses, references))

    def exact(self, sums: Statistics) -> float:
        """The same for one corpus by sacrebleu itself; `corpus` may differ from it by rounding. sums: (K,)."""
        return float(self.sacrebleu()._compute_score_from_stats(sums.tolist()).score)

    def value(self, outputs: Outputs) -> float:
        """As sacrebleu's `corpus_score`."""
        return float(self.sacrebleu().corpus_score(outputs.hypotheses, outputs.references).score)

    def signature(self, references: int) -> str:
        """sacrebleu's."""
        metric = self.sacrebleu()
        metric.num_refs = references
        return str(metric.get_signature())


class NgramMetric(SummedMetric):
    """A metric of n-grams in common, which also scores single sentences, and all pairs of several texts at once."""

    orders: ClassVar[int]
    """The longest n-grams that it counts."""

    @abstractmethod
    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """(…): the score (0 to 100) of single sentences with these statistics (…, K)."""

    def sentence_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """sacrebleu's `sentence_score` (0 to 100) of each hypothesis against its reference."""
        metric = self.sentence_sacrebleu()
        return [
            float(metric.sentence_score(hypothesis, [reference]).score)
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]

    def sentence_sacrebleu(self) -> SacreMetric:
        """A new instance of sacrebleu's class with its options for single sentences."""
        return self.sacrebleu()

    @abstractmethod
    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """How often a text has each of its n-grams, (n, n-gram)."""

    @abstractmethod
    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """(H, R, K): the statistics of H hypotheses against each of R references.

        counts (H, n), lengths (R, n): n-grams of each order in hypotheses and references; matches (H, R, n): in common.
        """

    def pairwise(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(N, N): the sentence score (0 to 100) of text i as hypothesis with text j as its reference.

        The same as N² calls of sacrebleu's `sentence_score`, but the n-grams of each text are counted only once.
        """
        grams = [self.grams(text) for text in texts]
        known = sorted({gram[0] for each in grams for gram in each})
        numbers: dict[object, int] = {}
        for order in known:  # n-grams of one order get neighbouring columns
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
        lengths = _by_order(counts, orders, self.orders)
        matches = np.zeros((len(texts), len(texts), self.orders), np.int64)
        for row in range(len(texts)):
            its = np.flatnonzero(counts[row])
            common = np.minimum(counts[row, its], counts[:, its])
            matches[row] = _by_order(common, orders[its], self.orders)
        return self.sentences(self.paired(lengths, lengths, matches))


def _by_order(counts: NDArray[np.int32], orders: NDArray[np.int64], most: int) -> Statistics:
    """(N, most): sums of the counts (N, V) over n-grams of each order; orders: (V,), from 0, ascending."""
    sums = np.concatenate([np.zeros((len(counts), 1), np.int64), counts.cumsum(1, dtype=np.int64)], 1)
    return np.asarray(np.diff(sums[:, np.searchsorted(orders, np.arange(most + 1))], axis=1))
