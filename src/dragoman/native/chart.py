"""`best_spans`, the best tree over a sentence for scores of labelled spans, in C."""

import ctypes
from ctypes import byref, c_double, c_int32, c_void_p
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ResourceError
from dragoman.native.build import best_library, load
from dragoman.native.compiler import CHART

NOT_IN_TREE = -1
"""The label of a span that is not part of a tree."""


def best_spans(
    scores: NDArray[np.float32], words: int, margin: float = 0.0, gold: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.int32], float]:
    """Return the binary tree with the largest sum of scores: the label of each of its spans, and the sum.

    scores: (spans, labels) for the spans of `words` words, at least 1, in the order of `span_indices`. Label 0 stands
    for a span that is not a constituent; the whole sentence is one, unless its label in `gold` is 0. gold: (spans,) the
    correct labels, without which a label has an additional score of `margin`, for training; None: no margin. The label
    of a span outside of the tree is `NOT_IN_TREE`. The sum is NaN if a score is. Raises NoLibraryError without a C
    compiler, ResourceError if the memory is exhausted.
    """
    scores = np.ascontiguousarray(scores, np.float32)
    assert len(scores) == words * (words + 1) // 2, "there is one row of scores per span"
    tree = np.empty(len(scores), np.int32)
    correct = None if gold is None else np.ascontiguousarray(gold, np.int32)
    total = c_double()
    failed = _library().dragoman_chart_best(
        scores.ctypes.data,
        words,
        scores.shape[1],
        margin,
        None if correct is None else correct.ctypes.data,
        tree.ctypes.data,
        byref(total),
    )
    if failed:
        raise ResourceError(f"the chart of a sentence of {words:,} words does not fit into memory: divide the sentence")
    return tree, total.value


def span_indices(words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the end (spans,) of each span: [0, 1), [0, 2), …, [0, words), [1, 2), …"""
    starts, ends = np.triu_indices(words)
    return starts, ends + 1


@cache
def _library() -> ctypes.CDLL:
    library = load(best_library(CHART), CHART)
    library.dragoman_chart_best.argtypes = (c_void_p, c_int32, c_int32, c_double, c_void_p, c_void_p, c_void_p)
    library.dragoman_chart_best.restype = c_int32
    return library
