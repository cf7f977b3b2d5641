"""BLEU and chrF of many sums of sentence statistics at once, as sacrebleu computes each of them."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams, extract_all_word_ngrams

from dragoman.metrics.lines import check_lines

Statistics = NDArray[np.int64]
"""(…, K), the K numbers that a metric keeps of a sentence; those of a corpus are their sums."""

_LOG_OF_NOTHING = -9999999999.0
"""sacrebleu's logarithm of 0."""


class SummedMetric(ABC):
    """A metric whose statistics add up over sentences. name: as scores are called; `metric`: sacrebleu's."""

    name: ClassVar[str]
    orders: ClassVar[int]
    """The longest n-grams that it counts."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """(N, K) of N sentences. Raises DataError for unequal counts and empty references."""
        check_lines(hypotheses, references)
        return np.array(self.metric._extract_corpus_statistics(hypotheses, references), np.int64)

    @abstractmethod
    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """(…): the score (0 to 100) of corpora with these sums (…, K)."""

    @abstractmethod
    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """(…): the score (0 to 100) of single sentences with these statistics."""

    @abstractmethod
    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """How often a text has each of its n-grams, (n, n-gram)."""

    @abstractmethod
    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """(H, R, K) of H hypotheses against R references.

        counts (H, n), lengths (R, n): n-grams of each order in the ones and the others; matches (H, R, n): in common.
        """


class SummedBLEU(SummedMetric):
    """sacrebleu's BLEU; of a sentence with the orders that it has (effective order), zeros smoothed as ever."""

    name, orders = "BLEU", 4

    def __init__(self) -> None:
        super().__init__(BLEU())

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """As `BLEU().corpus_score`."""
        return _bleu(sums, effective=False)

    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """As `BLEU(effective_order=True).sentence_score`."""
        return _bleu(statistics, effective=True)

    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Of words, as the tokeniser 13a finds them."""
        found, _ = extract_all_word_ngrams(self.metric._preprocess_segment(text), 1, self.orders)
        return {(len(gram), gram): count for gram, count in found.items()}

    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Lengths in words, matches, n-grams of the hypothesis."""
        shape = matches.shape[:2]
        words = np.broadcast_to(counts[:, None, :1], (*shape, 1)), np.broadcast_to(lengths[None, :, :1], (*shape, 1))
        return np.concatenate([*words, matches, np.broadcast_to(counts[:, None], matches.shape)], -1)


class SummedChrF(SummedMetric):
    """sacrebleu's chrF2: character 1- to 6-grams without blanks, Popović 2015."""

    name, orders = "chrF2", 6
    _beta: ClassVar[int] = 2

    def __init__(self) -> None:
        super().__init__(CHRF())

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """As `CHRF().corpus_score`."""
        parts = sums.reshape(*sums.shape[:-1], self.orders, 3).astype(np.float64)
        hypothesis, reference, matches = parts[..., 0], parts[..., 1], parts[..., 2]
        there = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(there.sum(-1), 1)
        precision = (np.where(there, matches, 0) / np.where(there, hypothesis, 1)).sum(-1) / orders
        recall = (np.where(there, matches, 0) / np.where(there, reference, 1)).sum(-1) / orders
        weighed = self._beta**2 * precision + recall
        scores = 100 * (1 + self._beta**2) * precision * recall / np.where(weighed > 0, weighed, 1)
        return np.asarray(np.where(weighed > 0, scores, 0.0))

    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """As `CHRF().sentence_score`."""
        return self.corpus(statistics)

    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Of characters."""
        orders: list[Counter[str]] = extract_all_char_ngrams(text, self.orders)
        return {(order, gram): count for order, found in enumerate(orders, 1) for gram, count in found.items()}

    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Of each order: n-grams of the hypothesis, where the reference has any, of the reference, in common."""
        of_reference = np.broadcast_to(lengths[None], matches.shape)
        of_hypothesis = np.where(of_reference > 0, counts[:, None], 0)
        return np.stack([of_hypothesis, of_reference, matches], -1).reshape(*matches.shape[:2], -1)


SUMMED: Mapping[str, Callable[[], SummedMetric]] = {"bleu": SummedBLEU, "chrf": SummedChrF}
"""By the names under which they can be asked for."""


def _bleu(statistics: Statistics, effective: bool) -> NDArray[np.float64]:
    """sacrebleu's `compute_bleu` with exponential smoothing (Chen and Cherry 2014, method 3)."""
    values = statistics.astype(np.float64)
    length, reference = values[..., 0], values[..., 1]
    matches, total = values[..., 2:6], values[..., 6:10]
    there = np.logical_and.accumulate(total > 0, -1)
    missed = there & (matches == 0)
    halvings = 2.0 ** np.cumsum(missed, -1)
    precision = 100 * np.where(missed, 1 / halvings, matches) / np.where(there, total, 1)
    logarithms = np.where(there, np.log(np.where(there, precision, 1)), 0.0 if effective else _LOG_OF_NOTHING)
    orders = np.maximum(there.sum(-1), 1) if effective else matches.shape[-1]
    short = (length < reference) & (length > 0)
    brevity = np.where(short, np.exp(1 - reference / np.where(short, length, 1)), length >= reference)
    scores = brevity * np.exp(logarithms.sum(-1) / orders)
    return np.asarray(np.where(matches.any(-1), scores, 0.0))
