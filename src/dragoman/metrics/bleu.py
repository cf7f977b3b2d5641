"""BLEU on detokenised text, BLEU on tokenised text as in older papers, and BLEU by source length."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams

from dragoman.base.errors import ConfigError
from dragoman.metrics.metric import Metric, Outputs, Score, check_lines, check_sources
from dragoman.metrics.summed import NgramMetric, Statistics

_LOG_OF_ZERO = -9999999999.0
"""sacrebleu's logarithm of 0."""


class BLEU(NgramMetric):
    """Corpus BLEU (0 to 100) on detokenised text, computed by sacrebleu (Papineni et al. 2002; Post 2018).

    Single sentences are scored with the n-gram orders that they contain (effective order). Zero counts are smoothed
    exponentially (Chen and Cherry 2014, method 3).
    """

    key, name, better, orders = "bleu", "BLEU", "higher", 4

    def __init__(self, lowercase: bool = False) -> None:
        self._lowercase = lowercase

    def sacrebleu(self) -> SacreBLEU:
        """Return sacrebleu's metric with the 13a tokeniser."""
        return SacreBLEU(lowercase=self._lowercase)

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `BLEU().corpus_score`."""
        return _bleu(sums, effective=False)

    def sentences(self, statistics: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `BLEU(effective_order=True).sentence_score`."""
        return _bleu(statistics, effective=True)

    def sentence_sacrebleu(self) -> SacreBLEU:
        """Return sacrebleu's metric with effective order."""
        return SacreBLEU(lowercase=self._lowercase, effective_order=True)

    def grams(self, text: str) -> Mapping[tuple[int, Hashable], int]:
        """Count the word n-grams of a text, tokenised by 13a."""
        counts, _ = extract_all_word_ngrams(self.sacrebleu()._preprocess_segment(text), 1, self.orders)
        return {(len(gram), gram): count for gram, count in counts.items()}

    def paired(self, counts: Statistics, lengths: Statistics, matches: Statistics) -> Statistics:
        """Return sacrebleu's statistics: lengths in words, matches, and n-gram counts of the hypothesis."""
        shape = matches.shape[:2]
        words = np.broadcast_to(counts[:, None, :1], (*shape, 1)), np.broadcast_to(lengths[None, :, :1], (*shape, 1))
        return np.concatenate([*words, matches, np.broadcast_to(counts[:, None], matches.shape)], -1)


class TokenisedBLEU(Metric):
    """Corpus BLEU on text that is lowercased, punctuation-normalised and Moses-tokenised.

    The score is not comparable with BLEU on detokenised text, so its name and signature state the preprocessing. This
    metric requires sacremoses.
    """

    key, name, better = "tokenized", "BLEU (lowercased, tokenised)", "higher"

    def __init__(self, language: str) -> None:
        """language: two-letter code of the target language."""
        self._language = language

    def value(self, outputs: Outputs) -> float:
        """Return corpus BLEU. Raises ConfigError for a language without rules or if sacremoses is not installed."""
        hypotheses, *references = (
            moses_tokenise(lines, self._language) for lines in (outputs.hypotheses, *outputs.references)
        )
        return float(self._sacrebleu().corpus_score(hypotheses, references).score)

    def signature(self, references: int) -> str:
        """Return sacrebleu's signature followed by the preprocessing."""
        metric = self._sacrebleu()
        metric.num_refs = references
        prepared = f"lc.norm.tok.moses-{self._language}|sacremoses:{version('sacremoses')}"
        return f"{metric.get_signature()}|prepared:{prepared}"

    def _sacrebleu(self) -> SacreBLEU:
        # `force` suppresses sacrebleu's warning that the text looks tokenised, because it is tokenised on purpose.
        return SacreBLEU(tokenize="none", force=True)


@dataclass(frozen=True)
class LengthScore:
    """The score of the sentences whose source has `shortest` to `longest` words (None: no upper limit)."""

    shortest: int
    longest: int | None
    sentences: int
    score: Score


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    *references: Sequence[str],
    edges: Sequence[int] = (1, 11, 16, 21, 31),
) -> list[LengthScore]:
    """Compute corpus BLEU for groups of sentences, grouped by the number of blank-separated words in the source.

    edges: the minimum length of each group, ascending. Shorter sentences belong to the first group, and the last group
    has no upper limit. Groups without sentences are omitted. Raises DataError for the same reasons as `BLEU.score`, and
    if the number of sources differs.
    """
    check_lines(hypotheses, references)
    check_sources(sources, hypotheses)
    lengths = np.array([len(source.split()) for source in sources])
    groups = np.clip(np.searchsorted(np.array(edges), lengths, side="right") - 1, 0, None)
    results = []
    for group, shortest in enumerate(edges):
        rows = np.nonzero(groups == group)[0].tolist()
        if not rows:
            continue
        score = BLEU().score([hypotheses[row] for row in rows], *([lines[row] for row in rows] for lines in references))
        longest = edges[group + 1] - 1 if group + 1 < len(edges) else None
        results.append(LengthScore(shortest, longest, len(rows), score))
    return results


def moses_tokenise(lines: Iterable[str], language: str) -> list[str]:
    """Lowercase lines, normalise their punctuation, tokenise them and escape special characters (`&quot;`).

    language: language code of the tokenisation rules. Raises ConfigError if Moses has no rules for the language, or if
    the optional dependency sacremoses is not installed.
    """
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer  # optional, and slow to import
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise ConfigError(
            'tokenised BLEU needs sacremoses, which is not installed: pip install "dragoman[moses]"'
        ) from error
    known = sorted({code for code in NonbreakingPrefixes().available_langs.values() if len(code) < 4})
    if language not in known:
        raise ConfigError(f"Moses has no tokenisation rules for '{language}': expected one of {', '.join(known)}")
    normalise = MosesPunctNormalizer(lang=language).normalize
    tokenise = MosesTokenizer(lang=language).tokenize
    # sacremoses is a port of a Perl script. That script reads lines with their newline, and one of its rules for
    # quotation marks needs the newline.
    return [str(tokenise(normalise(line.lower() + "\n"), return_str=True, escape=True)) for line in lines]


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
