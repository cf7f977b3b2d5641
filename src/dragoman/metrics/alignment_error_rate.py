"""The alignment error rate (AER), precision, recall and F1 of word alignments, from counts per sentence pair."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.resampling import Comparison, compare_resampled, interval_of, resampled_counts
from dragoman.metrics.score import Score

Link = tuple[int, int]
AlignmentMetric = Literal["aer", "precision", "recall", "f1"]
Counts = NDArray[np.float64]
"""Counts (…, 4) of sentence pairs: |A ∩ S|, |A ∩ P|, |A| and |S|."""

ALIGNMENT_METRICS: Mapping[AlignmentMetric, str] = MappingProxyType(
    {"aer": "AER", "precision": "precision", "recall": "recall", "f1": "F1"}
)
"""Display names of the metrics. AER is better if it is lower, the others if they are higher."""


@dataclass(frozen=True)
class GoldLinks:
    """The annotated links of a sentence pair. sure: S. possible: P, which contains S."""

    sure: Set[Link]
    possible: Set[Link]


def count_links(gold: GoldLinks, links: Set[Link]) -> tuple[int, int, int, int]:
    """Return |A ∩ S|, |A ∩ P|, |A| and |S| of a sentence pair with the links A."""
    return len(links & gold.sure), len(links & gold.possible), len(links), len(gold.sure)


def count_all(gold: Sequence[GoldLinks], alignments: Sequence[Set[Link]]) -> Counts:
    """Return the counts of all sentence pairs, (N, 4)."""
    rows = [count_links(expected, links) for expected, links in zip(gold, alignments, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 4)


def alignment_metric(counts: Counts, name: AlignmentMetric) -> NDArray[np.float64]:
    """Return a metric in percent, (…), from summed counts (…, 4).

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), precision = |A ∩ P| / |A| and recall = |A ∩ S| / |S|. F1 is the
    harmonic mean of precision and recall. Without any links, precision is 100, and AER is 0 if there are no sure links
    either. Source: Och and Ney (2003), "A systematic comparison of various statistical alignment models", section 5.2.
    """
    sure, possible, links, all_sure = np.moveaxis(counts, -1, 0)
    if name == "aer":
        return 100 - _percentage(sure + possible, links + all_sure)
    precision, recall = _percentage(possible, links), _percentage(sure, all_sure)
    if name == "precision":
        return precision
    if name == "recall":
        return recall
    return np.where(precision + recall > 0, 2 * precision * recall / np.maximum(precision + recall, 1e-300), 0.0)


def _percentage(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(whole > 0, 100 * part / np.maximum(whole, 1), 100.0)


def score_alignments(
    systems: Sequence[Counts], signature: str, samples: int = 1000, seed: int = 12345
) -> tuple[list[dict[AlignmentMetric, Score]], list[dict[str, Comparison]]]:
    """Return all scores of each system, and the comparisons of each system after the first with the first.

    systems: the counts (N, 4) of each system on the same sentence pairs. All systems are resampled together, with the
    draws and the p-value of `paired_bootstrap`. signature: describes the counts; samples and seed are added.
    """
    signature = f"{signature}|bs:{samples}|seed:{seed}"
    blocks: list[list[Counts]] = [[] for _ in systems]
    for drawn in resampled_counts(len(systems[0]), samples, seed):
        for counts, block in zip(systems, blocks, strict=True):
            block.append(drawn @ counts)
    resampled = [np.concatenate(block) for block in blocks]
    scores: list[dict[AlignmentMetric, Score]] = []
    values: list[dict[AlignmentMetric, NDArray[np.float64]]] = []
    for counts, sets in zip(systems, resampled, strict=True):
        values.append({key: alignment_metric(sets, key) for key in ALIGNMENT_METRICS})
        scores.append(
            {
                key: Score(
                    name,
                    float(alignment_metric(counts.sum(0), key)),
                    signature,
                    key=key,
                    better="lower" if key == "aer" else "higher",
                    interval=interval_of(values[-1][key]),
                )
                for key, name in ALIGNMENT_METRICS.items()
            }
        )
    comparisons: list[dict[str, Comparison]] = [
        {
            key: compare_resampled(
                scores[0][key], other[key], values[0][key], other_values[key], samples=samples, seed=seed
            )
            for key in ALIGNMENT_METRICS
        }
        for other, other_values in zip(scores[1:], values[1:], strict=True)
    ]
    return scores, comparisons
