"""`Interleaved` and `Ordered`, the plans of several tasks combined into one plan, in rotation or in any order."""

from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan

Rows = NDArray[np.int64]


class Interleaved(Sequence[Rows]):
    """A sequence of rounds, each with one batch per task. An epoch is one pass over the first task's plan.

    A task with fewer batches than the first task continues with the plans of its later epochs. A task with more batches
    contributes different batches in each epoch. Rows are numbered across all tasks: the rows of task t start at
    starts[t].
    """

    def __init__(self, plans: Sequence[Sequence[BatchPlan]], starts: Sequence[int]) -> None:
        """plans: for each task, plans of consecutive epochs with at least as many batches as the first task's plan."""
        self._plans, self._starts = plans, starts
        self._ends = [list(accumulate(map(len, task_plans))) for task_plans in plans]
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
        number, task = divmod(index % len(self), len(self._plans))
        return self.task_batch(task, number)

    def task_batch(self, task: int, number: int) -> Rows:
        """Return the batch of a task in round `number`."""
        ends = self._ends[task]
        epoch = int(np.searchsorted(ends, number, side="right"))
        first = ends[epoch - 1] if epoch else 0
        return self._plans[task][epoch].batches[number - first] + self._starts[task]


class Ordered(Sequence[Rows]):
    """The batches of several tasks in a given order. Rows are numbered across all tasks, as in `Interleaved`."""

    def __init__(self, plans: Sequence[Sequence[BatchPlan]], starts: Sequence[int], order: NDArray[np.int64]) -> None:
        """plans: for each task, plans of consecutive epochs. order: (N,) the task of each batch."""
        own = [[batch for plan in task_plans for batch in plan.batches] for task_plans in plans]
        following = [iter(batches) for batches in own]
        self._batches = [next(following[task]) + starts[task] for task in order.tolist()]

    def __len__(self) -> int:
        return len(self._batches)

    @overload
    def __getitem__(self, index: int) -> Rows: ...

    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...

    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        return self._batches[index]


class TaskBatches(Sequence[Rows]):
    """The batches of one task in a combined plan, with row numbers that start at 0."""

    def __init__(self, batches: Sequence[Rows], positions: Sequence[int], start: int) -> None:
        """batches: the combined plan. positions: positions of the task's batches. start: the task's first row."""
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
