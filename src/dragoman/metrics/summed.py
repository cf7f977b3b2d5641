"""`SummedMetric`: corpus metrics computed from sums of sentence statistics, and those of sacrebleu among them."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric as SacreMetric

from dragoman.metrics.metric import Metric, Outputs, check_lines

Statistics = NDArray[Any]
"""An array (…, K) of K numbers per sentence. The statistics of a corpus are the sums over its sentences."""


class SummedMetric(Metric):
    """A metric computed from summed sentence statistics, so that test sets can be resampled cheaply."""

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """Return the statistics (N, K) of N sentences.

        Raises DataError for unequal numbers of lines or empty references.
        """

    @abstractmethod
    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the scores (…), 0 to 100, of corpora with the summed statistics `sums` (…, K)."""

    def exact(self, sums: Statistics) -> float:
        """Return the score of one corpus with these sums (K,)."""
        return float(self.corpus(sums))

    def value(self, outputs: Outputs) -> float:
        """Return the score of the corpus."""
        return self.exact(self.statistics(outputs.hypotheses, *outputs.references).sum(0))


class SacrebleuMetric(SummedMetric):
    """A metric of sacrebleu."""

    @abstractmethod
    def sacrebleu(self) -> SacreMetric:
        """Return a new instance of sacrebleu's class, because instances keep state between calls."""

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """Return the statistics (N, K) of N sentences.

        Raises DataError for unequal numbers of lines or empty references.
        """
        check_lines(hypotheses, references)
        return np.array(self.sacrebleu()._extract_corpus_statistics(hypotheses, references))

    def exact(self, sums: Statistics) -> float:
        """Return sacrebleu's score of one corpus with these sums (K,). `corpus` may differ from it by rounding."""
        return float(self.sacrebleu()._compute_score_from_stats(sums.tolist()).score)

    def value(self, outputs: Outputs) -> float:
        """Return sacrebleu's `corpus_score`."""
        return float(self.sacrebleu().corpus_score(outputs.hypotheses, outputs.references).score)

    def signature(self, references: int) -> str:
        """Return sacrebleu's signature."""
        metric = self.sacrebleu()
        metric.num_refs = references
        return str(metric.get_signature())


class NgramMetric(SacrebleuMetric):
    """A metric based on n-gram matches, which can also score single sentences and all pairs of several texts."""

    orders: ClassVar[int]
    """Maximum n-gram order."""

    @abstractmethod
    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """Return the scores (…), 0 to 100, of single sentences with the statistics (…, K)."""

    def sentence_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """Return sacrebleu's `sentence_score` (0 to 100) of each hypothesis against its reference."""
        metric = self.sentence_sacrebleu()
        return [
            float(metric.sentence_score(hypothesis, [reference]).score)
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]

    def sentence_sacrebleu(self) -> SacreMetric:
        """Return a new instance of sacrebleu's class with the options for single sentences."""
        return self.sacrebleu()

    @abstractmethod
    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Count the n-grams of a text. The keys of the result are (n, n-gram)."""

    @abstractmethod
    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Return the statistics (H, R, K) of each of H hypotheses against each of R references.

        counts (H, n), lengths (R, n): numbers of n-grams of each order in hypotheses and references. matches (H, R, n):
        numbers of n-grams in common.
        """

    def pairwise(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the sentence scores (N, N), 0 to 100, of text i as hypothesis against text j as reference.

        The result equals that of N² calls of sacrebleu's `sentence_score`, but the n-grams of each text are counted
        only once.
        """
        grams = [self.grams(text) for text in texts]
        columns: dict[object, int] = {}
        for order in sorted({gram[0] for each in grams for gram in each}):  # n-grams of one order must be adjacent
            for each in grams:
                for gram in each:
                    if gram[0] == order:
                        columns.setdefault(gram, len(columns))
        orders = np.zeros(len(columns), np.int64)
        counts = np.zeros((len(texts), len(columns)), np.int32)
        for row, each in enumerate(grams):
            for gram, count in each.items():
                counts[row, columns[gram]] = count
                orders[columns[gram]] = gram[0] - 1
        lengths = _sum_by_order(counts, orders, self.orders)
        matches = np.zeros((len(texts), len(texts), self.orders), np.int64)
        for row in range(len(texts)):
            present = np.flatnonzero(counts[row])
            common = np.minimum(counts[row, present], counts[:, present])
            matches[row] = _sum_by_order(common, orders[present], self.orders)
        return self.sentences(self.paired(lengths, lengths, matches))


def _sum_by_order(counts: NDArray[np.int32], orders: NDArray[np.int64], max_order: int) -> Statistics:
    """Sum counts (N, V) over the n-grams of each order: (N, max_order). orders: (V,), from 0, ascending."""
    sums = np.concatenate([np.zeros((len(counts), 1), np.int64), counts.cumsum(1, dtype=np.int64)], 1)
    return np.asarray(np.diff(sums[:, np.searchsorted(orders, np.arange(max_order + 1))], axis=1))
