"""Shares: which sentences of an update each rank computes, so that all have about the same work."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.training.updates.update import MicroBatch, Rows


def shares(
    batches: Sequence[Rows], lengths: NDArray[np.int32], ranks: int, whole: bool = False, halvings: int = 0
) -> list[list[MicroBatch]]:
    """The parts of every rank for the update made of `batches`, equally many a rank; all sentences are in one of them.

    Each rank gets as many whole batches as every other, with about the same number of tokens. What is left is cut
    between sentences, where the tokens' sum reaches what a rank lacks. A whole batch keeps the key that it has in a run
    of one process.

    lengths: (N, 2) tokens of source and target of the corpus' rows. whole: batches are never cut, so some ranks may get
    one less. halvings: how often each part is halved, for what the memory holds.
    """
    costs = [lengths[rows].sum(1, dtype=np.int64) + 2 for rows in batches]
    each = len(batches) // ranks
    found = _whole([int(cost.sum()) for cost in costs[: each * ranks]], ranks)
    parts = [[MicroBatch(batches[index], (index,)) for index in own] for own in found]
    rest = range(each * ranks, len(batches))
    sums = np.array([sum(int(costs[index].sum()) for index in own) for own in found])
    if whole:
        for rank, index in zip(np.argsort(sums, kind="stable").tolist(), rest, strict=False):
            parts[rank].append(MicroBatch(batches[index], (index,)))
    else:
        lacking = np.maximum(sum(int(cost.sum()) for cost in costs) / ranks - sums, 0.0)
        for index, ranks_of_rows in zip(rest, _cut([costs[index] for index in rest], lacking), strict=True):
            for rank in np.unique(ranks_of_rows).tolist():
                parts[rank].append(MicroBatch(batches[index][ranks_of_rows == rank], (index, rank)))
    parts = [[half for part in own for half in _halved(part, halvings)] for own in parts]
    passes = max(map(len, parts))
    stand_in = MicroBatch(batches[0][:1], (len(batches),), real=False)
    return [own + [stand_in] * (passes - len(own)) for own in parts]


def _whole(costs: Sequence[int], ranks: int) -> list[list[int]]:
    """Indices of the batches of each rank: the largest first, each to the rank with the least that still lacks one."""
    most = len(costs) // ranks
    own: list[list[int]] = [[] for _ in range(ranks)]
    sums = [0] * ranks
    for index in sorted(range(len(costs)), key=lambda index: (-costs[index], index)):
        rank = min((rank for rank in range(ranks) if len(own[rank]) < most), key=lambda rank: (sums[rank], rank))
        own[rank].append(index)
        sums[rank] += costs[index]
    return [sorted(indices) for indices in own]


def _cut(costs: Sequence[NDArray[np.int64]], lacking: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """For each batch the rank of each of its sentences: laid in a row, each rank has as much of it as it lacks.

    Where each batch can be divided among ranks of its own, it is, so that no rank has pieces of two.
    """
    if not costs:
        return []
    ranks = len(lacking)
    if ranks % len(costs) == 0:
        own = ranks // len(costs)
        return [i * own + _places(cost, lacking[i * own : (i + 1) * own]) for i, cost in enumerate(costs)]
    places = _places(np.concatenate(costs), lacking)
    return np.split(places, np.cumsum([len(cost) for cost in costs])[:-1])


def _places(costs: NDArray[np.int64], lacking: NDArray[np.float64]) -> NDArray[np.int64]:
    if not lacking.any():
        lacking = np.ones_like(lacking)
    middles = (np.cumsum(costs) - costs / 2) / costs.sum()
    ends = np.cumsum(lacking) / lacking.sum()
    places: NDArray[np.int64] = np.minimum(np.searchsorted(ends, middles, side="right"), len(lacking) - 1)
    return places


def _halved(part: MicroBatch, times: int) -> list[MicroBatch]:
    pieces = [part.rows]
    for _ in range(times):
        pieces = [half for rows in pieces for half in (np.array_split(rows, 2) if len(rows) > 1 else (rows,))]
    if len(pieces) == 1:
        return [part]
    return [MicroBatch(rows, (*part.key, number), part.real) for number, rows in enumerate(pieces)]
