"""The updates of an epoch: one process makes them of whole batches, each of several of its share."""

import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan
from dragoman.training.machine.interruption import Interruption
from dragoman.training.ranks.interface import Ranks
from dragoman.training.task import Batch
from dragoman.training.updates.shares import shares
from dragoman.training.updates.update import MicroBatch, Update

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AT_ONCE = 256
"""Updates that are shared out together: the plan of a large corpus is not in memory as a whole."""

Load = Callable[[BatchPlan, int], Iterable[Batch]]
"""The batches of a plan, from the one of that number on."""


@dataclass(frozen=True)
class Agreed:
    """What all ranks know alike before they compute an update: the update with the target tokens of all, the first
    one's clock (seconds), and a signal that any of them received. A run of one process has neither of the last two.
    """

    update: Update
    seconds: float | None = None
    signal: int | None = None


@dataclass(frozen=True)
class Sharing:
    """How an update's batches are divided. lengths: (N, sides) tokens of the examples; batches: of a plan, an update.

    whole: a batch is never cut; halvings: how often each part is halved, for what the memory holds; tasks: the names of
    those whose batches an update mixes.
    """

    lengths: NDArray[np.int32]
    batches: int
    whole: bool = False
    halvings: int = 0
    tasks: tuple[str, ...] = ("",)


class Updates:
    """What the ranks make of an epoch's plan."""

    def __init__(self, ranks: Ranks, sharing: Sharing) -> None:
        self.ranks, self.sharing = ranks, sharing

    def of(self, plan: BatchPlan, start: int, load: Load) -> Iterator[Update]:
        """From the plan's batch number `start` on."""
        if not self.ranks.several:
            whole = iter(load(plan, start))
            while batches := list(islice(whole, self.sharing.batches)):
                yield Update(batches, None, len(batches))
            return
        step = self.sharing.batches * _AT_ONCE
        for first in range(start, len(plan), step):
            yield from self._shared(plan, range(first, min(first + step, len(plan)), self.sharing.batches), load)

    def _shared(self, plan: BatchPlan, places: Sequence[int], load: Load) -> Iterator[Update]:
        """The updates that begin at some places of the plan."""
        groups = [plan.batches[place : place + self.sharing.batches] for place in places]
        own = [self._own(group) for group in groups]
        rows = [micro.rows for micros in own for micro in micros]
        batches = iter(load(BatchPlan(rows, plan.padding_waste), 0))
        for group, micros in zip(groups, own, strict=True):
            yield Update(list(islice(batches, len(micros))), micros, len(group))

    def agree(self, update: Update, clock: Callable[[], float], request: Interruption) -> Agreed:
        """One small message."""
        if update.micro_batches is None:
            return Agreed(update)
        own: Counter[str] = Counter()
        for batch, micro in zip(update.batches, update.micro_batches, strict=True):
            own[batch.task] += batch.target_tokens if micro.real else 0
        tasks = self.sharing.tasks
        mine = [*(own[task] for task in tasks), clock() if self.ranks.first else 0.0, *_flags(request)]
        sums = self.ranks.sum(mine)
        seconds, *received = sums[len(tasks) :]
        tokens = {task: int(count) for task, count in zip(tasks, sums, strict=False) if count}
        return Agreed(replace(update, tokens=tokens), seconds, _signal(received))

    def received(self, request: Interruption) -> int | None:
        """The signal that any rank has received."""
        return _signal(self.ranks.sum(_flags(request)))

    def _own(self, batches: Sequence[NDArray[np.int64]]) -> list[MicroBatch]:
        sharing = self.sharing
        found = shares(batches, sharing.lengths, self.ranks.size, sharing.whole, sharing.halvings)
        return found[self.ranks.rank]


def _flags(request: Interruption) -> list[float]:
    return [float(request.received == number) for number in _SIGNALS]


def _signal(counts: Sequence[float]) -> int | None:
    return next((number for number, count in zip(_SIGNALS, counts, strict=True) if count), None)
