"""Translation edit rate."""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.ter import TER as SacreTER

from dragoman.base.progress import Progress
from dragoman.metrics.bleu_tokenizer import CHARACTERS, DEFAULT
from dragoman.metrics.edit_rate import count_edits
from dragoman.metrics.metric import Outputs, check_lines
from dragoman.metrics.summed import SacrebleuMetric, Statistics

_ASIAN = ("zh", "ja-mecab")
"""Tokenisers of BLEU for whose languages sacrebleu's TER can separate Chinese characters and kana."""


class TER(SacrebleuMetric):
    """Translation edit rate (percent), equal to sacrebleu's (Snover et al. 2006).

    For Chinese and Japanese, sacrebleu's options for Asian text separate the characters. For other languages without
    spaces between words, all characters are separated by spaces before the tokenisation, and the signature says so.
    """

    key, name, better, unit, is_slow = "ter", "TER", "lower", "percent", True

    def __init__(self, tokenizer: str = DEFAULT) -> None:
        """tokenizer: the tokeniser of BLEU, by which TER's own is chosen."""
        self._tokenizer = tokenizer

    def with_tokenizer(self, tokenizer: str) -> Self:
        """Return the metric for the languages of another tokeniser."""
        return self if tokenizer == self._tokenizer else type(self)(tokenizer)

    def sacrebleu(self) -> SacreTER:
        """Return sacrebleu's metric."""
        is_asian = self._tokenizer in _ASIAN
        return SacreTER(normalized=is_asian, asian_support=is_asian)

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """Return the number of edits, and the mean number of reference words, of each sentence (N, 2).

        Raises DataError for unequal numbers of lines or empty references.
        """
        check_lines(hypotheses, references)
        rows = []
        with Progress("Computing TER", "lines", len(hypotheses)) as progress:
            for done, (hypothesis, *alternatives) in enumerate(zip(hypotheses, *references, strict=True), 1):
                words, targets = self._split(hypothesis), [self._split(each) for each in alternatives]
                edits = min(count_edits(words, target) for target in targets)
                rows.append((edits, sum(map(len, targets)) / len(targets)))
                progress.update(done)
        return np.array(rows)

    def _split(self, text: str) -> list[str]:
        prepared = " ".join(text) if self._tokenizer == CHARACTERS else text
        return str(self._sacrebleu._preprocess_segment(prepared)).split()

    @cached_property
    def _sacrebleu(self) -> SacreTER:
        return self.sacrebleu()

    def value(self, outputs: Outputs) -> float:
        """Return the score of sacrebleu's `corpus_score`."""
        return self.exact(self.statistics(outputs.hypotheses, *outputs.references).sum(0))

    def signature(self, references: int) -> str:
        """Return sacrebleu's signature, followed by `prepared:char` if the characters were separated."""
        prepared = "|prepared:char" if self._tokenizer == CHARACTERS else ""
        return super().signature(references) + prepared

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `TER().corpus_score`.

        sums: (…, 2) number of edits, and number of reference words, averaged over the references of each sentence.
        """
        edits, words = sums[..., 0].astype(np.float64), sums[..., 1].astype(np.float64)
        return np.asarray(100 * np.where(words > 0, edits / np.where(words > 0, words, 1), edits > 0))
