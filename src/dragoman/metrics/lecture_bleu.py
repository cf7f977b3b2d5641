"""BLEU as a slide of the lecture defines it."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from dragoman.metrics.metric import Metric, Outputs


class LectureBLEU(Metric):
    """Deck 002's formula (0 to 100): NOT the BLEU of the literature.

    min(1, Σ length / Σ reference length) · mean over pairs of (Π_{n=1..4} n-gram precision)^¼. It differs from corpus
    BLEU in taking the mean of sentence values (a sentence without a common 4-gram counts 0) and in a linear brevity
    factor. Matches are clipped by the reference's counts, as BLEU's are; a sentence too short for n-grams of some
    order is judged by the orders that it has. Words are those of sacrebleu's 13a tokeniser. With several references a
    pair takes the value, and the length, of the best one.
    """

    key, name, better = "lecture", "lecture BLEU (non-standard)", "higher"

    def value(self, outputs: Outputs) -> float:
        """The formula above."""
        tokenise = BLEU().tokenizer
        values, length, reference_length = [], 0, 0
        for hypothesis, *others in zip(outputs.hypotheses, *outputs.references, strict=True):
            words = tokenise(hypothesis).split()
            choices = [tokenise(other).split() for other in others]
            best = max(choices, key=lambda choice: (_precision_mean(words, choice), -abs(len(choice) - len(words))))
            values.append(_precision_mean(words, best))
            length += len(words)
            reference_length += len(best)
        return 100 * min(1.0, length / max(reference_length, 1)) * float(np.mean(values))

    def signature(self, references: int) -> str:
        """In the style of sacrebleu's."""
        return f"nrefs:{references}|case:mixed|tok:13a|formula:deck-002|mean-of-sentences|brevity:linear"


def _precision_mean(words: Sequence[str], reference: Sequence[str]) -> float:
    """The geometric mean of the clipped n-gram precisions, n = 1 … 4, of one sentence; 1 if both are empty."""
    precisions = []
    for order in range(1, min(4, len(words)) + 1):
        counts = Counter(zip(*(words[start:] for start in range(order)), strict=False))
        allowed = Counter(zip(*(reference[start:] for start in range(order)), strict=False))
        precisions.append((counts & allowed).total() / counts.total())
    if not precisions:
        return float(not reference)
    return float(np.prod(precisions) ** (1 / len(precisions)))
