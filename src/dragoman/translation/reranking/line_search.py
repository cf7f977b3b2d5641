"""Exact line search for feature weights that maximise the corpus score of the top hypotheses (Och 2003)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.summed import Statistics, SummedMetric

_GAIN = 1e-9
"""Score differences up to this size are ignored."""


class Lists(NamedTuple):
    """The hypotheses of N sentences: for each sentence features (n, F) and statistics (n, K) of the metric."""

    features: Sequence[NDArray[np.float64]]
    statistics: Sequence[Statistics]


class WeightedScore(NamedTuple):
    """Weights (F,) and the corpus score of the hypotheses that they rank first."""

    weights: NDArray[np.float64]
    score: float


def corpus_score(lists: Lists, weights: NDArray[np.float64], metric: SummedMetric) -> float:
    """Return the corpus score of the best hypothesis of each sentence. Ties are broken by the first hypothesis."""
    chosen = [int(np.argmax(features @ weights)) for features in lists.features]
    sums = np.sum([each[row] for each, row in zip(lists.statistics, chosen, strict=True)], axis=0)
    return float(metric.corpus(sums))


def envelope(levels: NDArray[np.float64], slopes: NDArray[np.float64]) -> tuple[list[int], list[float]]:
    """Return the upper envelope of the lines level + γ · slope for γ from −∞ to ∞, and the ascending γ of its corners.

    levels, slopes: (n,). There is one more line than corners.
    """
    order = np.lexsort((np.arange(len(levels)), -levels, slopes))
    top: list[int] = []
    starts: list[float] = []
    for line in order.tolist():
        if top and slopes[line] == slopes[top[-1]]:
            continue  # a parallel line that is not above
        while top:
            start = (levels[top[-1]] - levels[line]) / (slopes[line] - slopes[top[-1]])
            if len(top) == 1 or start > starts[-1]:
                break
            top.pop()
            starts.pop()
        if top:
            starts.append(float(start))
        top.append(line)
    return top, starts


def search_line(
    lists: Lists, weights: NDArray[np.float64], direction: NDArray[np.float64], metric: SummedMetric
) -> WeightedScore:
    """Return the best weights on the line weights + γ · direction.

    The score is constant between the values of γ at which the best hypothesis of a sentence changes. The returned γ is
    the middle of the interval with the best score (the widest interval if there are several). In an unbounded interval
    the returned γ is 1 beyond the outermost change.
    """
    sums: Statistics = np.zeros(lists.statistics[0].shape[1], np.int64)
    corners: list[float] = []
    changes: list[Statistics] = []
    for features, statistics in zip(lists.features, lists.statistics, strict=True):
        top, starts = envelope(features @ weights, features @ direction)
        sums = sums + statistics[top[0]]
        corners += starts
        changes += [statistics[after] - statistics[before] for before, after in pairwise(top)]
    if not corners:
        return WeightedScore(weights, corpus_score(lists, weights, metric))
    order = np.argsort(corners, kind="stable")
    borders = np.array(corners)[order]
    scores = metric.corpus(np.concatenate([sums[None], sums + np.cumsum(np.array(changes)[order], axis=0)]))
    middles = np.concatenate([[borders[0] - 1], (borders[1:] + borders[:-1]) / 2, [borders[-1] + 1]])
    widths = np.concatenate([[1.0], np.diff(borders), [1.0]])
    best = np.lexsort((widths, np.where(widths > 0, scores, -np.inf)))[-1]
    found = weights + middles[best] * direction
    return WeightedScore(found, corpus_score(lists, found, metric))


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
    for each in starts:
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
