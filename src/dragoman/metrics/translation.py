"""Scores of translations against references, each with the signature that says how it was computed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from dragoman.base.errors import DataError
from dragoman.metrics.lines import check_lines
from dragoman.metrics.moses import moses_tokenise


@dataclass(frozen=True)
class Score:
    """A number with its name and the signature without which it can't be compared with another."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f} ({self.signature})"


@dataclass(frozen=True)
class LengthScore:
    """The score of the sentences whose source has from `shortest` to `longest` words (None: no upper end)."""

    shortest: int
    longest: int | None
    sentences: int
    score: Score


def bleu(hypotheses: Sequence[str], *references: Sequence[str], lowercase: bool = False) -> Score:
    """Corpus BLEU (0 to 100) of detokenised text through sacrebleu, Papineni et al. 2002, Post 2018.

    Each of `references` holds one line a hypothesis. Raises DataError for unequal counts and empty references.
    """
    return _measure("BLEU", BLEU(lowercase=lowercase), hypotheses, references)


def chrf(hypotheses: Sequence[str], *references: Sequence[str]) -> Score:
    """chrF2 (0 to 100) through sacrebleu, Popović 2015. References and errors as for `bleu`."""
    return _measure("chrF2", CHRF(), hypotheses, references)


def ter(hypotheses: Sequence[str], *references: Sequence[str]) -> Score:
    """Translation edit rate (percent, lower is better) through sacrebleu, Snover et al. 2006. As for `bleu`."""
    return _measure("TER", TER(), hypotheses, references)


def tokenised_bleu(hypotheses: Sequence[str], *references: Sequence[str], language: str) -> Score:
    """Corpus BLEU of text that is first lowercased, punctuation-normalised and Moses-tokenised.

    Never to be compared with `bleu` of detokenised text, so name and signature say what was done. language: two
    letters, of the target. Needs sacremoses. References and errors as for `bleu`.
    """
    check_lines(hypotheses, references)
    prepared = [moses_tokenise(lines, language) for lines in (hypotheses, *references)]
    # force: sacrebleu need not warn that the text looks tokenised; it is, on purpose.
    score = _measure("BLEU (lowercased, tokenised)", BLEU(tokenize="none", force=True), prepared[0], prepared[1:])
    before = f"lc.norm.tok.moses-{language}|sacremoses:{version('sacremoses')}"
    return Score(score.name, score.value, f"{score.signature}|prepared:{before}")


def lecture_bleu(hypotheses: Sequence[str], *references: Sequence[str], language: str | None = None) -> Score:
    """Deck 002's formula (0 to 100): NOT the BLEU of the literature.

    min(1, Σ length / Σ reference length) · mean over pairs of (Π_{n=1..4} n-gram precision)^¼. It differs from corpus
    BLEU in taking the mean of sentence values (a sentence without a common 4-gram counts 0) and in a linear brevity
    factor. Matches are clipped by the reference's counts, as BLEU's are; a sentence too short for n-grams of some
    order is judged by the orders that it has. Words are those of sacrebleu's 13a tokeniser. With several references a
    pair takes the best one's value, and that one's length counts.
    """
    check_lines(hypotheses, references)
    tokenise = BLEU().tokenizer
    values, length, reference_length = [], 0, 0
    for hypothesis, *others in zip(hypotheses, *references, strict=True):
        words = tokenise(hypothesis).split()
        choices = [tokenise(other).split() for other in others]
        best = max(choices, key=lambda choice: (_precision_mean(words, choice), -abs(len(choice) - len(words))))
        values.append(_precision_mean(words, best))
        length += len(words)
        reference_length += len(best)
    value = 100 * min(1.0, length / max(reference_length, 1)) * float(np.mean(values))
    signature = f"nrefs:{len(references)}|case:mixed|tok:13a|formula:deck-002|mean-of-sentences|brevity:linear"
    return Score("lecture BLEU (non-standard)", value, signature)


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    *references: Sequence[str],
    edges: Sequence[int] = (1, 11, 16, 21, 31),
) -> list[LengthScore]:
    """Corpus BLEU of sentences grouped by their source's number of blank-separated words.

    edges: ascending, the shortest length of each group; shorter sentences join the first, and the last is open. Groups
    without sentences are left out. Raises DataError as `bleu`, and for a source count that differs.
    """
    check_lines(hypotheses, references)
    if len(sources) != len(hypotheses):
        raise DataError(f"{len(sources)} sources, but {len(hypotheses)} hypotheses; both need the same sentences")
    lengths = np.array([len(source.split()) for source in sources])
    groups = np.clip(np.searchsorted(np.array(edges), lengths, side="right") - 1, 0, None)
    results = []
    for group, shortest in enumerate(edges):
        rows = np.nonzero(groups == group)[0].tolist()
        if not rows:
            continue
        score = bleu([hypotheses[row] for row in rows], *([lines[row] for row in rows] for lines in references))
        longest = edges[group + 1] - 1 if group + 1 < len(edges) else None
        results.append(LengthScore(shortest, longest, len(rows), score))
    return results


def _measure(name: str, metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    check_lines(hypotheses, references)
    value = metric.corpus_score(hypotheses, references).score
    return Score(name, float(value), str(metric.get_signature()))


def _precision_mean(words: Sequence[str], reference: Sequence[str]) -> float:
    """The geometric mean of the clipped n-gram precisions, n = 1 … 4, of one sentence; nothing for nothing is 1."""
    precisions = []
    for order in range(1, min(4, len(words)) + 1):
        counts = Counter(zip(*(words[start:] for start in range(order)), strict=False))
        allowed = Counter(zip(*(reference[start:] for start in range(order)), strict=False))
        precisions.append((counts & allowed).total() / counts.total())
    if not precisions:
        return float(not reference)
    return float(np.prod(precisions) ** (1 / len(precisions)))
