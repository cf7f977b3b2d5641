"""Exact line search for feature weights that maximise the corpus score of the top hypotheses (Och 2003)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import until_cancelled
from dragoman.metrics.summed import Statistics, SummedMetric

_GAIN = 1e-9
"""Score differences up to this size are ignored."""


@dataclass(frozen=True)
class Lists:
    """The hypotheses of N sentences: for each sentence features (n, F) and statistics (n, K) of the metric.

    The computations use the hypotheses of all sentences in one array of M rows.
    """

    features: Sequence[NDArray[np.float64]]
    statistics: Sequence[Statistics]

    @cached_property
    def all_features(self) -> NDArray[np.float64]:
        """The features of all hypotheses (M, F)."""
        return np.concatenate(self.features)

    @cached_property
    def all_statistics(self) -> Statistics:
        """The statistics of all hypotheses (M, K)."""
        return np.concatenate(self.statistics)

    @cached_property
    def sentences(self) -> NDArray[np.int64]:
        """The sentence of each hypothesis (M,)."""
        return np.repeat(np.arange(len(self.features)), [len(each) for each in self.features])


class WeightedScore(NamedTuple):
    """Weights (F,) and the corpus score of the hypotheses that they rank first."""

    weights: NDArray[np.float64]
    score: float


def corpus_score(lists: Lists, weights: NDArray[np.float64], metric: SummedMetric) -> float:
    """Return the corpus score of the best hypothesis of each sentence. Ties are broken by the first hypothesis."""
    scores = lists.all_features @ weights
    best = np.flatnonzero(scores == _reduce(np.maximum, scores, lists.sentences))
    chosen = best[_is_first(lists.sentences[best])]
    return float(metric.corpus(lists.all_statistics[chosen].sum(0)))


class Envelopes(NamedTuple):
    """The upper envelopes of the lines of N sentences, for γ from −∞ to ∞.

    first: (N,), the line at −∞. corners: (C,), the values of γ at which an envelope continues with another line.
    before, after: (C,), the lines on both sides of each corner.
    """

    first: NDArray[np.int64]
    corners: NDArray[np.float64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def find_envelopes(levels: NDArray[np.float64], slopes: NDArray[np.float64], sentences: NDArray[np.int64]) -> Envelopes:
    """Return the upper envelopes of the lines level + γ · slope of each sentence.

    levels, slopes, sentences: (M,), where `sentences` ascends from 0 without gaps. Of equal lines, the first one is
    used. In each step, every envelope is followed to its next corner: the nearest intersection with a steeper line.
    """
    least = np.flatnonzero(slopes == _reduce(np.minimum, slopes, sentences))
    highest = least[levels[least] == _reduce(np.maximum, levels[least], sentences[least])]
    current = highest[_is_first(sentences[highest])]
    first, empty = current, np.zeros(0, np.int64)
    corners, before, after = [np.zeros(0)], [empty], [empty]
    active = np.arange(len(levels))
    while True:
        rises = slopes[active] - slopes[current[sentences[active]]]
        active, rises = active[rises > 0], rises[rises > 0]
        if not len(active):
            break
        rows = sentences[active]
        crossings = (levels[current[rows]] - levels[active]) / rises
        nearest = crossings == _reduce(np.minimum, crossings, rows)
        crossed, rows, crossings = active[nearest], rows[nearest], crossings[nearest]
        steepest = slopes[crossed] == _reduce(np.maximum, slopes[crossed], rows)
        crossed, rows, crossings = crossed[steepest], rows[steepest], crossings[steepest]
        chosen = _is_first(rows)
        corners.append(crossings[chosen])
        before.append(current[rows[chosen]])
        after.append(crossed[chosen])
        current = current.copy()
        current[rows[chosen]] = crossed[chosen]
    return Envelopes(first, np.concatenate(corners), np.concatenate(before), np.concatenate(after))


def search_line(
    lists: Lists, weights: NDArray[np.float64], direction: NDArray[np.float64], metric: SummedMetric
) -> WeightedScore:
    """Return the best weights on the line weights + γ · direction.

    The score is constant between the values of γ at which the best hypothesis of a sentence changes. The returned γ is
    the middle of the interval with the best score (the widest interval if there are several). In an unbounded interval
    the returned γ is 1 beyond the outermost change.
    """
    features, statistics = lists.all_features, lists.all_statistics
    found = find_envelopes(features @ weights, features @ direction, lists.sentences)
    if not len(found.corners):
        return WeightedScore(weights, corpus_score(lists, weights, metric))
    order = np.argsort(found.corners, kind="stable")
    borders = found.corners[order]
    sums = statistics[found.first].sum(0)
    changes = (statistics[found.after] - statistics[found.before])[order]
    scores = metric.corpus(np.concatenate([sums[None], sums + np.cumsum(changes, axis=0)]))
    middles = np.concatenate([[borders[0] - 1], (borders[1:] + borders[:-1]) / 2, [borders[-1] + 1]])
    widths = np.concatenate([[1.0], np.diff(borders), [1.0]])
    best = np.lexsort((widths, np.where(widths > 0, scores, -np.inf)))[-1]
    new = weights + middles[best] * direction
    return WeightedScore(new, corpus_score(lists, new, metric))


def _is_first(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each element of a sorted array (n,) is the first of its value."""
    return np.concatenate([[True], rows[1:] != rows[:-1]])[: len(rows)]


def _reduce(operation: np.ufunc, values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the minimum or maximum of the values (n,) of each row, repeated for all values of the row."""
    starts = np.flatnonzero(_is_first(rows))
    return np.repeat(operation.reduceat(values, starts), np.diff(starts, append=len(rows)))


def search_weights(
    lists: Lists, start: NDArray[np.float64], metric: SummedMetric, restarts: int = 20, seed: int = 1
) -> WeightedScore:
    """Return the best weights found by line searches along one feature at a time, from `start` and from random weights.

    The weights are scaled so that the first weight is 1 or, if it is not positive, so that the largest absolute weight
    is 1. Their score is never worse than that of `start`.
    """
    generator = np.random.default_rng(seed)
    starts = [start, *generator.uniform(-0.5, 1, (restarts, len(start)))]
    best = WeightedScore(start, corpus_score(lists, start, metric))
    for each in until_cancelled(starts):
        found = _climb(lists, each, metric)
        if found.score > best.score + _GAIN:
            best = found
    scaled = _scaled(best.weights)
    score = corpus_score(lists, scaled, metric)
    return WeightedScore(scaled, score) if score >= best.score - _GAIN else best  # rounding may break a tie otherwise


def _climb(lists: Lists, start: NDArray[np.float64], metric: SummedMetric) -> WeightedScore:
    """Repeat line searches until none along a single feature improves the score."""
    current = WeightedScore(start, corpus_score(lists, start, metric))
    while True:
        lines = [search_line(lists, current.weights, direction, metric) for direction in np.eye(len(start))]
        best = max(lines, key=lambda line: line.score)
        if best.score <= current.score + _GAIN:
            return current
        current = best


def _scaled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scaled weights, which order all hypotheses in the same way."""
    size = weights[0] if weights[0] > 0 else np.abs(weights).max()
    return weights / size if size > 0 else weights
