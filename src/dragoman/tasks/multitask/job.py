"""`MultiTaskJob`, a job with several tasks, whose batches are mixed in every update."""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.data.batches.plan import BatchPlan
from dragoman.tasks.multitask.members import Member, MultiTaskObjective, MultiTaskValidator, TaskBatch
from dragoman.tasks.multitask.plan import Interleaved, TaskBatches
from dragoman.training.objectives.objective import Objective
from dragoman.training.task import Content, Job
from dragoman.training.validation import Validation

_SIDES = 2
_BLOCK = 1 << 18


class MultiTaskJob(Job):
    """Trains several tasks at once. Every update minimises Σ λ_t L_t, where L_t is the mean loss of task t.

    An update consists of `train.accumulate` batches of each task. The first task is the main task: it determines
    the epochs, the model, the model folder and the best checkpoint.
    """

    def __init__(self, first: Job, name: str) -> None:
        """first: the job of the first task. name: the first task's name in logs. Add the other tasks with `join`."""
        self._first, self._name = first, name
        self._members = [Member(name, first, 1.0, lambda model: model)]

    def join(self, member: Member) -> None:
        """Add an auxiliary task. Must be called before `build`, after both jobs are prepared."""
        self._members.append(member)
        self.tasks = tuple(each.name for each in self._members)

    # Delegated to the first task.

    @property
    def run(self) -> Any:
        """The run of the first task."""
        return self._first.run

    @run.setter
    def run(self, run: Any) -> None:
        self._first.run = run

    @property
    def notes(self) -> Mapping[str, float]:
        """The notes of the first task."""
        return self._first.notes

    @notes.setter
    def notes(self, notes: Mapping[str, float]) -> None:
        self._first.notes = notes

    def check_initial_values(self) -> None:
        """Check the initial values of the first task."""
        self._first.check_initial_values()

    def prepare(self) -> None:
        """Prepare the examples of every task. Subclasses prepare the first task, then the others, and call `join`."""
        for member in self._members:
            member.job.prepare()

    def build(self) -> nn.Module:
        """Build the model of the first task."""
        return self._first.build()

    def initialise(self, model: nn.Module) -> Mapping[str, float]:
        """Initialise the model with the first task's job."""
        return self._first.initialise(model)

    @property
    def model_width(self) -> int:
        """The model width d."""
        return self._first.model_width

    def outline(self, model: nn.Module) -> str:
        """Return the first task's outline, and the number of examples and λ of each other task."""
        others = [f"{member.name}: {member.job.examples:,} · λ {member.weight:.3g}" for member in self._members[1:]]
        return " · ".join([self._first.outline(model), *others])

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write the parameters as a model folder of the first task."""
        self._first.write(folder, parameters, step, validation, averaged_steps)

    # Combined over all tasks.

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
            folder = self.run.out.parent / "prepared"
            self._lengths = _concatenate_lengths([member.job.lengths for member in self._members], folder)
        return self._lengths

    @property
    def batch_tokens(self) -> int:
        """The token budget of a batch: the maximum over all tasks."""
        return max(member.job.batch_tokens for member in self._members)

    def peak_tokens(self) -> int:
        """Return the maximum number of tokens that are computed at once by any task."""
        return max(member.job.peak_tokens() for member in self._members)

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Return the estimate of the first task's job, because the first task uses the whole model."""
        return self._first.activation_bytes(model, tokens, free)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan an epoch in which the batches of all tasks alternate."""
        first = self._first.plan(epoch)
        plans = [[first], *(_plans_for(member.job, epoch, len(first)) for member in self._members[1:])]
        return BatchPlan(Interleaved(plans, self._starts), first.padding_waste)

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the share of padding in the first task's batches."""
        return f"{self._first.padding(plan)} in the task {self._name}"

    @property
    def batches_per_update(self) -> int:
        """Number of batches per update; each task contributes the same number."""
        return self._first.batches_per_update * len(self._members)

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[TaskBatch]:
        """Load each batch with the loader of its task, in the order of the plan."""
        positions: Sequence[Sequence[int]]
        count, total = len(self._members), len(plan)
        if isinstance(plan.batches, Interleaved):
            tasks: Sequence[int] = _RoundRobin(start, total, count)
            positions = [range(start + (task - start) % count, total, count) for task in range(count)]
        else:
            first_rows = [int(plan.batches[position][0]) for position in range(start, total)]
            tasks = (np.searchsorted(self._starts, first_rows, side="right") - 1).tolist()
            positions = [[start + at for at, owner in enumerate(tasks) if owner == task] for task in range(count)]
        loaders = []
        for member, task_positions, first_row in zip(self._members, positions, self._starts, strict=True):
            task_plan = BatchPlan(TaskBatches(plan.batches, task_positions, first_row), plan.padding_waste)
            loaders.append(iter(member.job.batches(task_plan, 0, epoch, pin)))
        for task in tasks:
            yield TaskBatch(self._members[task].name, next(loaders[task]))

    def objective(self, device: torch.device) -> Objective:
        """Build the objective Σ λ_t L_t."""
        members = {member.name: member for member in self._members}
        return MultiTaskObjective(members, {name: member.job.objective(device) for name, member in members.items()})

    def trial(self, model: Any) -> TaskBatch:
        """Return a trial batch of the first task, which uses the whole model."""
        return TaskBatch(self._name, self._first.trial(model))

    def validator(self, model: Any, device: torch.device) -> MultiTaskValidator:
        """Return a validator for all tasks."""
        return MultiTaskValidator(
            {member.name: member.job.validator(member.body(model), device) for member in self._members}
        )

    def flops_per_target_token(self) -> float:
        """Return the mean over the target tokens of an update, or 0 if it is unknown for a task."""
        flops, tokens = [], []
        for member in self._members:
            lengths = member.job.lengths
            flops.append(member.job.flops_per_target_token())
            tokens.append(float(lengths[:, -1].sum(dtype=np.int64)) / max(1, len(member.job.plan(0))))
        if not all(flops):
            return 0.0
        return sum(flop * count for flop, count in zip(flops, tokens, strict=True)) / sum(tokens)

    def measure(self, folder: Path) -> None:
        """See `Job.measure`; measured by the first task."""
        self._first.measure(folder)

    def close(self) -> None:
        """Stop the processes of every task."""
        for member in self._members:
            member.job.close()

    @property
    def _starts(self) -> list[int]:
        """Index of each task's first row among the rows of all tasks."""
        return np.cumsum([0, *(member.job.examples for member in self._members[:-1])]).tolist()  # type: ignore[no-any-return]


def temperature_weights(tokens: Sequence[int], temperature: float) -> list[float]:
    """Return λ_t = (n_t / n_1)^(1/T) for each task t with n_t target tokens; λ_1 = 1 (Arivazhagan et al. 2019)."""
    return [(count / tokens[0]) ** (1 / temperature) for count in tokens]


class _RoundRobin(Sequence[int]):
    """The task indices of the batches from `start` to `end`: 0 to `count` − 1 in rotation."""

    def __init__(self, start: int, end: int, count: int) -> None:
        self._start, self._end, self._count = start, end, count

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, index: Any) -> Any:
        if index >= len(self):
            raise IndexError(index)
        return (self._start + index) % self._count


def _plans_for(job: Job, epoch: int, batches: int) -> list[BatchPlan]:
    """Return plans of a task's epochs that have at least `batches` batches in total.

    epoch: number of the first task's epoch; each one gets different plans.
    """
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


def _concatenate_lengths(lengths: Sequence[NDArray[np.int32]], folder: Path) -> NDArray[np.int32]:
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
