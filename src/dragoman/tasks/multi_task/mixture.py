"""`TaskMixture`, the base class of jobs with several tasks, whose batches are mixed."""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchPlan
from dragoman.tasks.multi_task.members import MultiTaskObjective, TaskBatch, TaskMember
from dragoman.tasks.multi_task.plan import MixedBatches, TaskBatches
from dragoman.training.objectives.objective import Objective
from dragoman.training.task import Content, Job

_SIDES = 2
_BLOCK = 1 << 18


class TaskMixture(Job):
    """Trains several tasks with one model. An update minimises Σ λ_t L_t over the tasks whose batches it contains.

    L_t is the mean loss of task t in the update. Subclasses set `_members` before they are used, and plan the batches.
    """

    _members: list[TaskMember]

    @property
    def _scratch(self) -> Path | None:
        """The folder for temporary files; None: the system's."""
        return None

    @property
    def contents(self) -> Mapping[str, Content]:
        """The training corpora (key `data`) and the validation sets (key `valid`) of all tasks."""
        by_task = [member.job.contents for member in self._members]
        return {key: _combine_contents([contents[key] for contents in by_task]) for key in by_task[0]}

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of tokens of every example of all tasks (N, 2), memory-mapped.

        The examples are ordered by task. A side that a task does not have has 0 tokens.
        """
        if not hasattr(self, "_lengths"):
            lengths = [member.job.lengths for member in self._members]
            self._lengths = _concatenate_lengths(lengths, self._scratch)
        return self._lengths

    @property
    def batch_tokens(self) -> int:
        """The token budget of a batch: the maximum over all tasks."""
        return max(member.job.batch_tokens for member in self._members)

    def peak_tokens(self) -> int:
        """Return the maximum number of tokens that are computed at once by any task."""
        return max(member.job.peak_tokens() for member in self._members)

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[TaskBatch]:
        """Load each batch with the loader of its task, in the order of the plan."""
        if isinstance(plan.batches, MixedBatches):
            order = plan.batches.order[start:]
        else:
            first_rows = [int(plan.batches[position][0]) for position in range(start, len(plan))]
            order = np.searchsorted(self._starts, first_rows, side="right") - 1
        loaders = []
        for task, (member, first_row) in enumerate(zip(self._members, self._starts, strict=True)):
            positions = start + np.flatnonzero(order == task)
            task_plan = BatchPlan(TaskBatches(plan.batches, positions, first_row), plan.padding_waste)
            loaders.append(iter(member.job.batches(task_plan, 0, epoch, pin)))
        for task in order:
            yield TaskBatch(self._members[task].name, next(loaders[task]))

    def objective(self, device: torch.device) -> Objective:
        """Build the objective Σ λ_t L_t."""
        members = {member.name: member for member in self._members}
        return MultiTaskObjective(members, {name: member.job.objective(device) for name, member in members.items()})

    def flops_per_target_token(self) -> float:
        """Return the mean over the target tokens of an update, or 0 if it is unknown for a task."""
        flops, tokens = [], []
        for member in self._members:
            flops.append(member.job.flops_per_target_token())
            tokens.append(member.job.target_token_count() / max(1, len(member.job.plan(0))))
        if not all(flops):
            return 0.0
        return sum(flop * count for flop, count in zip(flops, tokens, strict=True)) / sum(tokens)

    def close(self) -> None:
        """Stop the processes of every task."""
        for member in self._members:
            member.job.close()

    @property
    def _starts(self) -> list[int]:
        """Index of each task's first row among the rows of all tasks."""
        return np.cumsum([0, *(member.job.examples for member in self._members[:-1])]).tolist()  # type: ignore[no-any-return]


def plans_for(job: Job, epoch: int, batches: int) -> list[BatchPlan]:
    """Return plans of a task's epochs that have at least `batches` batches in total.

    epoch: number of the run's epoch; each one gets different plans, and the task's plan of the same number if that is
    sufficient.
    """
    own = job.plan(epoch)
    if len(own) >= batches:
        return [own]
    per_epoch = max(1, len(job.plan(0)))
    number = epoch * -(-batches // per_epoch)
    plans: list[BatchPlan] = []
    while sum(map(len, plans)) < batches:
        plans.append(job.plan(number))
        number += 1
    return plans


def _combine_contents(contents: Sequence[Content]) -> Content:
    if len(contents) == 1:
        return contents[0]
    digest = hashlib.sha256(" ".join(content.fingerprint for content in contents).encode())
    return Content(", ".join(content.name for content in contents), digest.hexdigest())


def _concatenate_lengths(lengths: Sequence[NDArray[np.int32]], folder: Path | None) -> NDArray[np.int32]:
    """Concatenate arrays in a temporary file. The last side of each array is in the last column of the result."""
    if len(lengths) == 1:
        return lengths[0]
    with tempfile.TemporaryFile(dir=folder) as file:
        for array in lengths:
            for start in range(0, len(array), _BLOCK):
                block = np.zeros((len(array[start : start + _BLOCK]), _SIDES), np.int32)
                block[:, _SIDES - array.shape[1] :] = array[start : start + _BLOCK]
                file.write(block.tobytes())
        file.flush()
        return np.memmap(file, np.int32, "r", shape=(sum(map(len, lengths)), _SIDES)).view(np.ndarray)
