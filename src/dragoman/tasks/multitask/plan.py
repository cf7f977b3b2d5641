"""`Interleaved`: the plans of several tasks as one plan that alternates between the tasks."""

from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan

Rows = NDArray[np.int64]


class Interleaved(Sequence[Rows]):
    """Rounds of batches, one batch per task in each round. An epoch is one pass over the first task's plan.

    A task with fewer batches continues with the plans of its later epochs; a task with more batches contributes
    different ones in each epoch. Rows are numbered across all tasks: the rows of task t start at starts[t].
    """

    def __init__(self, plans: Sequence[Sequence[BatchPlan]], starts: Sequence[int]) -> None:
        """plans: for each task, consecutive epochs with at least as many batches as the first task's plan."""
        self._plans, self._starts = plans, starts
        self._ends = [list(accumulate(map(len, own))) for own in plans]
        self.rounds = self._ends[0][-1]

    def __len__(self) -> int:
        return self.rounds * len(self._plans)

    @overload
    def __getitem__(self, index: int) -> Rows: ...

    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...

    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        turn, task = divmod(index % len(self), len(self._plans))
        return self.of_task(task, turn)

    def of_task(self, task: int, turn: int) -> Rows:
        """Return the batch of `task` in round `turn`."""
        ends = self._ends[task]
        epoch = int(np.searchsorted(ends, turn, side="right"))
        first = ends[epoch - 1] if epoch else 0
        return self._plans[task][epoch].batches[turn - first] + self._starts[task]


class OwnBatches(Sequence[Rows]):
    """The batches of one task in a plan, with its own row numbers. positions: positions of the batches in the plan."""

    def __init__(self, batches: Sequence[Rows], positions: Sequence[int], start: int) -> None:
        """start: the index of the task's first row among the rows of all tasks."""
        self._batches, self._positions, self._start = batches, positions, start

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Rows: ...

    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...

    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return self._batches[self._positions[index]] - self._start
