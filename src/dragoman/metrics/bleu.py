"""BLEU on detokenised text, and BLEU by source length."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams

from dragoman.metrics.bleu_tokenizer import DEFAULT
from dragoman.metrics.metric import check_lines, check_sources
from dragoman.metrics.score import Score
from dragoman.metrics.summed import NgramMetric, Statistics
from dragoman.text.words import count_words, is_unspaced_text

_LOG_OF_ZERO = -9999999999.0
"""sacrebleu's logarithm of 0."""


class BLEU(NgramMetric):
    """Corpus BLEU (0 to 100) on detokenised text, computed by sacrebleu (Papineni et al. 2002; Post 2018).

    Single sentences are scored with the n-gram orders that they contain (effective order). Zero counts are smoothed
    exponentially (Chen and Cherry 2014, method 3).
    """

    key, name, better, orders = "bleu", "BLEU", "higher", 4
    _lowercase: ClassVar[bool] = False

    def __init__(self, tokenizer: str = DEFAULT) -> None:
        """tokenizer: one of `bleu_tokenizer.TOKENIZERS`, which must be available (`check_tokenizer`)."""
        self._tokenizer = tokenizer

    def with_tokenizer(self, tokenizer: str) -> Self:
        """Return BLEU with another tokeniser."""
        return self if tokenizer == self._tokenizer else type(self)(tokenizer)

    def sacrebleu(self) -> SacreBLEU:
        """Return sacrebleu's metric with the tokeniser."""
        return SacreBLEU(lowercase=self._lowercase, tokenize=self._tokenizer)

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `BLEU().corpus_score`."""
        return _bleu(sums, effective=False)

    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `BLEU(effective_order=True).sentence_score`."""
        return _bleu(statistics, effective=True)

    def sentence_sacrebleu(self) -> SacreBLEU:
        """Return sacrebleu's metric with effective order."""
        return SacreBLEU(lowercase=self._lowercase, tokenize=self._tokenizer, effective_order=True)

    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Count the word n-grams of a text."""
        counts, _ = extract_all_word_ngrams(self._tokenise(text), 1, self.orders)
        return {(len(gram), gram): count for gram, count in counts.items()}

    @cached_property
    def _tokenise(self) -> Callable[[str], str]:
        tokenise: Callable[[str], str] = self.sacrebleu()._preprocess_segment
        return tokenise

    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Return sacrebleu's statistics: lengths in words, matches, and n-gram counts of the hypothesis."""
        shape = matches.shape[:2]
        words = np.broadcast_to(counts[:, None, :1], (*shape, 1)), np.broadcast_to(lengths[None, :, :1], (*shape, 1))
        return np.concatenate([*words, matches, np.broadcast_to(counts[:, None], matches.shape)], -1)


class LowercaseBLEU(BLEU):
    """BLEU of lowercased texts, as `sacrebleu -lc` computes it and many older papers report it."""

    key, name, by_default = "bleu-lc", "BLEU (lowercase)", False
    _lowercase = True


WORD_EDGES = (1, 11, 16, 21, 31)
CHARACTER_EDGES = (1, 21, 31, 41, 61)
"""Minimum source lengths of the groups of `bleu_by_length`, in words, or in characters of scripts without spaces."""


@dataclass(frozen=True)
class LengthScore:
    """The score of the sentences whose source has `shortest` to `longest` units (None: no upper limit).

    unit: words, or characters if the sources are in a script without spaces between words.
    """

    shortest: int
    longest: int | None
    sentences: int
    score: Score
    unit: Literal["words", "characters"] = "words"


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    *references: Sequence[str],
    edges: Sequence[int] | None = None,
    tokenizer: str = DEFAULT,
) -> list[LengthScore]:
    """Compute corpus BLEU for groups of sentences, grouped by the length of the source as `count_words` counts it.

    edges: the minimum length of each group, ascending; None: `WORD_EDGES`, or `CHARACTER_EDGES` if the sources are in a
    script without spaces between words. Shorter sentences belong to the first group, and the last group has no upper
    limit. Groups without sentences are omitted. tokenizer: the tokeniser of BLEU. Raises DataError for the same reasons
    as `BLEU.score`, and if the number of sources differs.
    """
    check_lines(hypotheses, references)
    check_sources(sources, hypotheses)
    is_unspaced = is_unspaced_text(sources)
    edges = edges or (CHARACTER_EDGES if is_unspaced else WORD_EDGES)
    lengths = np.array([count_words(source) for source in sources])
    groups = np.clip(np.searchsorted(np.array(edges), lengths, side="right") - 1, 0, None)
    metric = BLEU(tokenizer=tokenizer)
    results = []
    for group, shortest in enumerate(edges):
        rows = np.nonzero(groups == group)[0].tolist()
        if not rows:
            continue
        score = metric.score([hypotheses[row] for row in rows], *([lines[row] for row in rows] for lines in references))
        longest = edges[group + 1] - 1 if group + 1 < len(edges) else None
        results.append(LengthScore(shortest, longest, len(rows), score, "characters" if is_unspaced else "words"))
    return results


def _bleu(statistics: Statistics, effective: bool) -> NDArray[np.float64]:
    """Compute sacrebleu's `compute_bleu` with exponential smoothing (Chen and Cherry 2014, method 3), vectorised.

    statistics: (…, 10), as returned by `BLEU.paired`. effective: whether to use the effective n-gram order.
    """
    values = statistics.astype(np.float64)
    length, reference = values[..., 0], values[..., 1]
    matches, total = values[..., 2:6], values[..., 6:10]
    has_order = np.logical_and.accumulate(total > 0, -1)
    unmatched = has_order & (matches == 0)
    halvings = 2.0 ** np.cumsum(unmatched, -1)
    precision = 100 * np.where(unmatched, 1 / halvings, matches) / np.where(has_order, total, 1)
    logarithms = np.where(has_order, np.log(np.where(has_order, precision, 1)), 0.0 if effective else _LOG_OF_ZERO)
    orders = np.maximum(has_order.sum(-1), 1) if effective else matches.shape[-1]
    short = (length < reference) & (length > 0)
    brevity = np.where(short, np.exp(1 - reference / np.where(short, length, 1)), length >= reference)
    scores = brevity * np.exp(logarithms.sum(-1) / orders)
    return np.asarray(np.where(matches.any(-1), scores, 0.0))
