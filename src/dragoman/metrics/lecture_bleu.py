"""BLEU as defined on a slide of the lecture."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from dragoman.metrics.bleu_tokenizer import DEFAULT
from dragoman.metrics.metric import Metric, Outputs


class LectureBLEU(Metric):
    """The formula of deck 002 (0 to 100), which is NOT the BLEU of the literature.

    The value is min(1, Σ length / Σ reference length) · mean over pairs of (Π_{n=1..4} n-gram precision)^¼. It differs
    from corpus BLEU in two ways: it is a mean over sentences (a sentence without a common 4-gram counts as 0), and the
    brevity factor is linear. Matches are clipped by the reference's counts, as in BLEU. A sentence that is too short
    for some orders is scored with the lower orders. Words are tokenised by one of sacrebleu's tokenisers. If there are
    several references, the value and the length of the best reference are used.
    """

    key, name, better = "lecture", "lecture BLEU (non-standard)", "higher"

    def __init__(self, tokenizer: str = DEFAULT) -> None:
        """tokenizer: one of `bleu_tokenizer.TOKENIZERS`."""
        self._tokenizer = tokenizer

    def with_tokenizer(self, tokenizer: str) -> Self:
        """Return the metric with another tokeniser."""
        return self if tokenizer == self._tokenizer else type(self)(tokenizer)

    def value(self, outputs: Outputs) -> float:
        """Return the value of the formula in the class description."""
        tokenise = BLEU(tokenize=self._tokenizer).tokenizer
        values, length, reference_length = [], 0, 0
        for hypothesis, *references in zip(outputs.hypotheses, *outputs.references, strict=True):
            words = tokenise(hypothesis).split()
            candidates = [tokenise(reference).split() for reference in references]
            best = max(candidates, key=lambda each: (_mean_precision(words, each), -abs(len(each) - len(words))))
            values.append(_mean_precision(words, best))
            length += len(words)
            reference_length += len(best)
        return 100 * min(1.0, length / max(reference_length, 1)) * float(np.mean(values))

    def signature(self, references: int) -> str:
        """Return a signature in sacrebleu's format."""
        tokenizer = BLEU(tokenize=self._tokenizer).tokenizer_signature
        return f"nrefs:{references}|case:mixed|tok:{tokenizer}|formula:deck-002|mean-of-sentences|brevity:linear"


def _mean_precision(words: Sequence[str], reference: Sequence[str]) -> float:
    """Return the geometric mean of a sentence's clipped n-gram precisions, n = 1 … 4; 1 if both texts are empty."""
    precisions = []
    for order in range(1, min(4, len(words)) + 1):
        counts = Counter(zip(*(words[start:] for start in range(order)), strict=False))
        reference_counts = Counter(zip(*(reference[start:] for start in range(order)), strict=False))
        precisions.append((counts & reference_counts).total() / counts.total())
    if not precisions:
        return float(not reference)
    return float(np.prod(precisions) ** (1 / len(precisions)))
