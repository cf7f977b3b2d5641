"""`MixedBatches`, the plans of several tasks combined into one plan, and `TaskBatches`, one task's part of it."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan

Rows = NDArray[np.int64]


class _ComputedBatches(Sequence[Rows]):
    """A sequence of batches that are computed when they are read."""

    @abstractmethod
    def batch(self, index: int) -> Rows:
        """Return the rows of a batch. Raises IndexError."""

    @overload
    def __getitem__(self, index: int) -> Rows: ...

    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...

    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return self.batch(index)


class MixedBatches(_ComputedBatches):
    """The batches of several tasks in a given order, such as rotation.

    Rows are numbered across all tasks: the rows of task t start at starts[t]. order: (N,) the task of each batch.
    """

    def __init__(self, plans: Sequence[Sequence[BatchPlan]], starts: Sequence[int], order: NDArray[np.int64]) -> None:
        """plans: for each task, plans of consecutive epochs with at least as many batches as `order` has of the task.

        A task with few batches continues with the plans of its later epochs.
        """
        self._plans, self._starts, self.order = plans, starts, order
        self._ends = [list(accumulate(map(len, task_plans))) for task_plans in plans]
        self._numbers = np.empty(len(order), np.int64)
        """The number of each batch among those of its task."""
        for task in range(len(plans)):
            positions = np.flatnonzero(order == task)
            self._numbers[positions] = np.arange(len(positions))

    def __len__(self) -> int:
        return len(self.order)

    def batch(self, index: int) -> Rows:
        """Return the rows of a batch."""
        task, number = int(self.order[index]), int(self._numbers[index])
        ends = self._ends[task]
        epoch = int(np.searchsorted(ends, number, side="right"))
        first = ends[epoch - 1] if epoch else 0
        return self._plans[task][epoch].batches[number - first] + self._starts[task]


class TaskBatches(_ComputedBatches):
    """The batches of one task in a combined plan, with row numbers that start at 0."""

    def __init__(self, batches: Sequence[Rows], positions: NDArray[np.int64], start: int) -> None:
        """batches: the combined plan. positions: positions of the task's batches. start: the task's first row."""
        self._batches, self._positions, self._start = batches, positions, start

    def __len__(self) -> int:
        return len(self._positions)

    def batch(self, index: int) -> Rows:
        """Return the rows of a batch."""
        rows: Rows = self._batches[int(self._positions[index])] - self._start
        return rows
