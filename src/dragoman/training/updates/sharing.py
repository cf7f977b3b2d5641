"""Grouping an epoch's batches into updates, and dividing each update equally among ranks."""

import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan
from dragoman.training.machine.interruption import Interruption
from dragoman.training.ranks.ranks import Ranks
from dragoman.training.task import Batch
from dragoman.training.updates.update import MicroBatch, Rows, Update

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_UPDATES_PER_CHUNK = 256
"""Number of updates that are divided at a time, because the whole plan of a large corpus does not fit in memory."""

Load = Callable[[BatchPlan, int], Iterable[Batch]]
"""A function that loads the batches of a plan, starting with a given number."""


@dataclass(frozen=True)
class AgreedUpdate:
    """An update about which all ranks have the same information.

    update: the update, with the number of target tokens of all ranks. seconds: time of the first rank's clock. signal:
    a signal received by any rank. `seconds` and `signal` are None in a single-process run.
    """

    update: Update
    seconds: float | None = None
    signal: int | None = None


@dataclass(frozen=True)
class Sharing:
    """The settings for dividing the batches of an update.

    lengths: (N, sides) numbers of tokens of the examples. batches: number of planned batches per update. whole: whether
    batches must not be cut. halvings: number of times that each part is halved to fit in memory. tasks: names of the
    tasks whose batches are mixed in an update.
    """

    lengths: NDArray[np.int32]
    batches: int
    whole: bool = False
    halvings: int = 0
    tasks: tuple[str, ...] = ("",)


class Updates:
    """The updates of an epoch's plan, as computed by this rank."""

    def __init__(self, ranks: Ranks, sharing: Sharing) -> None:
        self.ranks, self.sharing = ranks, sharing

    def iterate(self, plan: BatchPlan, start: int, load: Load) -> Iterator[Update]:
        """Yield the updates of the plan, starting with batch number `start`."""
        if not self.ranks.distributed:
            loaded = iter(load(plan, start))
            while batches := list(islice(loaded, self.sharing.batches)):
                yield Update(batches, None, len(batches))
            return
        step = self.sharing.batches * _UPDATES_PER_CHUNK
        for first in range(start, len(plan), step):
            yield from self._shared(plan, range(first, min(first + step, len(plan)), self.sharing.batches), load)

    def _shared(self, plan: BatchPlan, starts: Sequence[int], load: Load) -> Iterator[Update]:
        """Yield the updates that start at the positions `starts` of the plan."""
        groups = [plan.batches[first : first + self.sharing.batches] for first in starts]
        own = [self._own_micro_batches(group) for group in groups]
        rows = [micro.rows for micros in own for micro in micros]
        batches = iter(load(BatchPlan(rows, plan.padding_waste), 0))
        for group, micros in zip(groups, own, strict=True):
            yield Update(list(islice(batches, len(micros))), micros, len(group))

    def agree(self, update: Update, clock: Callable[[], float], interruption: Interruption) -> AgreedUpdate:
        """Exchange token counts, clock and signals of an update with the other ranks in one small message."""
        if update.micro_batches is None:
            return AgreedUpdate(update)
        own: Counter[str] = Counter()
        for batch, micro in zip(update.batches, update.micro_batches, strict=True):
            own[batch.task] += batch.target_tokens if micro.real else 0
        tasks = self.sharing.tasks
        own_values = [*(own[task] for task in tasks), clock() if self.ranks.is_main else 0.0, *_flags(interruption)]
        sums = self.ranks.sum(own_values)
        seconds, *flags = sums[len(tasks) :]
        tokens = {task: int(count) for task, count in zip(tasks, sums, strict=False) if count}
        return AgreedUpdate(replace(update, tokens=tokens), seconds, _signal(flags))

    def received_signal(self, interruption: Interruption) -> int | None:
        """Return a signal that any rank has received, or None."""
        return _signal(self.ranks.sum(_flags(interruption)))

    def _own_micro_batches(self, batches: Sequence[NDArray[np.int64]]) -> list[MicroBatch]:
        sharing = self.sharing
        micro_batches = divide_update(batches, sharing.lengths, self.ranks.size, sharing.whole, sharing.halvings)
        return micro_batches[self.ranks.rank]


def _flags(interruption: Interruption) -> list[float]:
    return [float(interruption.received == number) for number in _SIGNALS]


def _signal(counts: Sequence[float]) -> int | None:
    return next((number for number, count in zip(_SIGNALS, counts, strict=True) if count), None)


def divide_update(
    batches: Sequence[Rows], lengths: NDArray[np.int32], ranks: int, whole: bool = False, halvings: int = 0
) -> list[list[MicroBatch]]:
    """Return each rank's micro-batches. All ranks get the same number, and together these contain each row once.

    Each rank gets the same number of whole batches, with about the same number of tokens. The remaining batches are cut
    between sentences, so that all ranks get equal numbers of tokens. A whole batch keeps the key that it has in a
    single-process run.

    lengths: (N, 2) numbers of source and target tokens of the corpus rows. whole: whether batches must not be cut; some
    ranks may then get one batch fewer. halvings: number of times that each part is halved to fit in memory.
    """
    costs = [lengths[rows].sum(1, dtype=np.int64) + 2 for rows in batches]
    per_rank = len(batches) // ranks
    assigned = _assign_whole([int(cost.sum()) for cost in costs[: per_rank * ranks]], ranks)
    parts = [[MicroBatch(batches[index], (index,)) for index in indices] for indices in assigned]
    rest = range(per_rank * ranks, len(batches))
    sums = np.array([sum(int(costs[index].sum()) for index in indices) for indices in assigned])
    if whole:
        for rank, index in zip(np.argsort(sums, kind="stable").tolist(), rest, strict=False):
            parts[rank].append(MicroBatch(batches[index], (index,)))
    else:
        lacking = np.maximum(sum(int(cost.sum()) for cost in costs) / ranks - sums, 0.0)
        for index, ranks_of_rows in zip(rest, _assign_rows([costs[index] for index in rest], lacking), strict=True):
            for rank in np.unique(ranks_of_rows).tolist():
                parts[rank].append(MicroBatch(batches[index][ranks_of_rows == rank], (index, rank)))
    parts = [[half for part in own for half in _halve(part, halvings)] for own in parts]
    passes = max(map(len, parts))
    placeholder = MicroBatch(batches[0][:1], (len(batches),), real=False)
    return [own + [placeholder] * (passes - len(own)) for own in parts]


def _assign_whole(costs: Sequence[int], ranks: int) -> list[list[int]]:
    """Return the indices of each rank's batches, assigned largest first to the rank with the fewest tokens so far."""
    limit = len(costs) // ranks
    own: list[list[int]] = [[] for _ in range(ranks)]
    sums = [0] * ranks
    for index in sorted(range(len(costs)), key=lambda index: (-costs[index], index)):
        rank = min((rank for rank in range(ranks) if len(own[rank]) < limit), key=lambda rank: (sums[rank], rank))
        own[rank].append(index)
        sums[rank] += costs[index]
    return [sorted(indices) for indices in own]


def _assign_rows(costs: Sequence[NDArray[np.int64]], lacking: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Return the rank of each sentence, per batch. Consecutive sentences fill one rank after another.

    If the ranks can be divided evenly among the batches, each batch is divided among its own ranks, so that no rank
    gets parts of two batches.

    lacking: (ranks,) number of tokens that each rank lacks.
    """
    if not costs:
        return []
    ranks = len(lacking)
    if ranks % len(costs) == 0:
        own = ranks // len(costs)
        return [i * own + _assign_ranks(cost, lacking[i * own : (i + 1) * own]) for i, cost in enumerate(costs)]
    assigned = _assign_ranks(np.concatenate(costs), lacking)
    return np.split(assigned, np.cumsum([len(cost) for cost in costs])[:-1])


def _assign_ranks(costs: NDArray[np.int64], lacking: NDArray[np.float64]) -> NDArray[np.int64]:
    if not lacking.any():
        lacking = np.ones_like(lacking)
    middles = (np.cumsum(costs) - costs / 2) / costs.sum()
    ends = np.cumsum(lacking) / lacking.sum()
    assigned: NDArray[np.int64] = np.minimum(np.searchsorted(ends, middles, side="right"), len(lacking) - 1)
    return assigned


def _halve(part: MicroBatch, times: int) -> list[MicroBatch]:
    pieces = [part.rows]
    for _ in range(times):
        pieces = [half for rows in pieces for half in (np.array_split(rows, 2) if len(rows) > 1 else (rows,))]
    if len(pieces) == 1:
        return [part]
    return [MicroBatch(rows, (*part.key, number), part.real) for number, rows in enumerate(pieces)]
