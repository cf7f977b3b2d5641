"""`Interleaved`: the plans of several tasks as one, whose every run of neighbours has a batch of each."""

from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan

Rows = NDArray[np.int64]


class Interleaved(Sequence[Rows]):
    """Batch t of a round is of task t; the first task's plan is read once, so an epoch is its epoch.

    A task with fewer batches goes on with its plans of later epochs, one with more has the rest left for other epochs,
    whose order is another. Rows are numbered through all tasks: those of task t begin at starts[t].
    """

    def __init__(self, plans: Sequence[Sequence[BatchPlan]], starts: Sequence[int]) -> None:
        """plans: for each task as many epochs, one after another, as have the first task's number of batches."""
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
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        place, task = divmod(index % len(self), len(self._plans))
        return self.of_task(task, place)

    def of_task(self, task: int, place: int) -> Rows:
        """The batch of `task` in the round `place`."""
        ends = self._ends[task]
        epoch = int(np.searchsorted(ends, place, side="right"))
        first = ends[epoch - 1] if epoch else 0
        return self._plans[task][epoch].batches[place - first] + self._starts[task]


class OwnBatches(Sequence[Rows]):
    """Those batches of a plan that are of one task, with its own row numbers. places: where they stand in the plan."""

    def __init__(self, batches: Sequence[Rows], places: Sequence[int], start: int) -> None:
        """start: the number of the task's first row among all."""
        self._batches, self._places, self._start = batches, places, start

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Rows: ...

    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...

    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return self._batches[self._places[index]] - self._start
