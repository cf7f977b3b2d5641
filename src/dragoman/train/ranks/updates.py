"""The updates of an epoch: one process makes them of whole batches, each of several of its share."""

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.batch import Batch
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.train.interruption import Interruption
from dragoman.train.ranks.interface import Ranks
from dragoman.train.ranks.parallel import Alone
from dragoman.train.ranks.shares import Part, shares

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AT_ONCE = 256
"""Updates that are shared out together: the plan of a large corpus is not in memory as a whole."""


@dataclass(frozen=True)
class Update:
    """batches: what this process computes; parts: what each of them is, None in a run of one process; count: batches
    of the epoch's plan that the update is made of.
    """

    batches: list[Batch]
    parts: list[Part] | None
    count: int


@dataclass(frozen=True)
class Agreed:
    """What all ranks know alike before they compute an update: its target tokens, the first one's clock (seconds), and
    a signal that any of them received. A run of one process has none of these.
    """

    tokens: int | None = None
    seconds: float | None = None
    signal: int | None = None


class Updates:
    """What the ranks make of an epoch's plan. load: the loader of a plan, from its batch of that number on."""

    def __init__(
        self, ranks: Ranks, parallel: Alone, lengths: NDArray[np.int32], accumulate: int, halvings: int
    ) -> None:
        self.ranks, self.whole = ranks, parallel.whole_batches
        self.lengths, self.accumulate, self.halvings = lengths, accumulate, halvings

    def of(self, plan: BatchPlan, start: int, load: Callable[[BatchPlan, int], Loader]) -> Iterator[Update]:
        """From the plan's batch number `start` on."""
        if not self.ranks.several:
            whole = iter(load(plan, start))
            while update := list(islice(whole, self.accumulate)):
                yield Update(update, None, len(update))
            return
        step = self.accumulate * _AT_ONCE
        for first in range(start, len(plan), step):
            yield from self._shared(plan, range(first, min(first + step, len(plan)), self.accumulate), load)

    def _shared(
        self, plan: BatchPlan, places: Sequence[int], load: Callable[[BatchPlan, int], Loader]
    ) -> Iterator[Update]:
        """The updates that begin at some places of the plan."""
        groups = [plan.batches[place : place + self.accumulate] for place in places]
        own = [self._own(group) for group in groups]
        rows = [part.rows for parts in own for part in parts]
        batches = iter(load(BatchPlan(rows, plan.padding_waste), 0))
        for group, parts in zip(groups, own, strict=True):
            yield Update(list(islice(batches, len(parts))), parts, len(group))

    def agree(self, update: Update, clock: Callable[[], float], request: Interruption) -> Agreed:
        """One small message."""
        if update.parts is None:
            return Agreed()
        pairs = zip(update.batches, update.parts, strict=True)
        own = sum(batch.target_tokens for batch, part in pairs if part.counts)
        tokens, seconds, *heard = self.ranks.sum([own, clock() if self.ranks.first else 0.0, *_flags(request)])
        return Agreed(int(tokens), seconds, _signal(heard))

    def heard(self, request: Interruption) -> int | None:
        """The signal that any rank has received."""
        return _signal(self.ranks.sum(_flags(request)))

    def _own(self, batches: Sequence[NDArray[np.int64]]) -> list[Part]:
        found = shares(batches, self.lengths, self.ranks.size, self.whole, self.halvings)
        return found[self.ranks.rank]


def _flags(request: Interruption) -> list[float]:
    return [float(request.received == number) for number in _SIGNALS]


def _signal(counts: Sequence[float]) -> int | None:
    return next((number for number, count in zip(_SIGNALS, counts, strict=True) if count), None)
