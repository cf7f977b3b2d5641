"""`MultiTaskJob`: the main task and the auxiliary tasks of a run, whose batches are mixed in every update."""

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
from dragoman.tasks.multitask.plan import Interleaved, OwnBatches
from dragoman.training.objectives.objective import Objective
from dragoman.training.task import Content, Job
from dragoman.training.validation import Validation

_SIDES = 2
_AT_ONCE = 1 << 18


class MultiTaskJob(Job):
    """Trains several tasks at once: every update minimises Σ λ_t L_t, where L_t is the mean loss of task t.

    An update has `train.accumulate` batches of each task.

    Epochs, the model, its folder and the choice of the best checkpoint are those of the first task.
    """

    def __init__(self, first: Job, name: str) -> None:
        """first: the job of the main task, called `name` in logs. Add the other tasks with `join`."""
        self._first, self._name = first, name
        self._members = [Member(name, first, 1.0, lambda model: model)]

    def join(self, member: Member) -> None:
        """Add an auxiliary task. Call it before `build`, after both jobs are prepared."""
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
        """Prepare the examples of every task. Subclasses prepare the first task, then join the others."""
        for member in self._members:
            member.job.prepare()

    def build(self) -> nn.Module:
        """Build the model of the first task."""
        return self._first.build()

    def initialise(self, model: nn.Module) -> Mapping[str, float]:
        """Initialise the model as the first task does."""
        return self._first.initialise(model)

    @property
    def model_width(self) -> int:
        """The width d of the first task's model."""
        return self._first.model_width

    def outline(self, model: nn.Module) -> str:
        """Return the outline of the first task and the numbers of examples of the others."""
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
        """Write a model folder of the first task."""
        self._first.write(folder, parameters, step, validation, averaged_steps)

    # Combined over all tasks.

    @property
    def contents(self) -> Mapping[str, Content]:
        """The corpora and the validation sets of all tasks."""
        each = [member.job.contents for member in self._members]
        return {name: _together([contents[name] for contents in each]) for name in each[0]}

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The tokens (N, 2) of the examples of all tasks, task after task; 0 for a missing side. Memory-mapped."""
        if not hasattr(self, "_lengths"):
            self._lengths = _joined([member.job.lengths for member in self._members], self.run.out.parent / "prepared")
        return self._lengths

    @property
    def batch_tokens(self) -> int:
        """The largest token budget of any task."""
        return max(member.job.batch_tokens for member in self._members)

    def peak_tokens(self) -> int:
        """Return the largest number of any task."""
        return max(member.job.peak_tokens() for member in self._members)

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Return the first task's estimate for `tokens` tokens, because that task uses the whole model."""
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
        """The number of batches per update; each task contributes the same number."""
        return self._first.batches_per_update * len(self._members)

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[TaskBatch]:
        """Read each batch with the loader of its task, in the order of the plan."""
        positions: Sequence[Sequence[int]]
        count, total = len(self._members), len(plan)
        if isinstance(plan.batches, Interleaved):
            owners: Sequence[int] = _RoundRobin(start, total, count)
            positions = [range(start + (task - start) % count, total, count) for task in range(count)]
        else:
            firsts = [int(plan.batches[position][0]) for position in range(start, total)]
            owners = (np.searchsorted(self._starts, firsts, side="right") - 1).tolist()
            positions = [[start + at for at, owner in enumerate(owners) if owner == task] for task in range(count)]
        loaders = [
            iter(member.job.batches(BatchPlan(OwnBatches(plan.batches, own, first), plan.padding_waste), 0, epoch, pin))
            for member, own, first in zip(self._members, positions, self._starts, strict=True)
        ]
        for owner in owners:
            yield TaskBatch(self._members[owner].name, next(loaders[owner]))

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
        """Return the mean over the target tokens of an update."""
        flops, tokens = [], []
        for member in self._members:
            lengths = member.job.lengths
            flops.append(member.job.flops_per_target_token())
            tokens.append(float(lengths[:, -1].sum(dtype=np.int64)) / max(1, len(member.job.plan(0))))
        return sum(one * count for one, count in zip(flops, tokens, strict=True)) / sum(tokens) if all(flops) else 0.0

    def close(self) -> None:
        """Stop the processes of every task."""
        for member in self._members:
            member.job.close()

    @property
    def _starts(self) -> list[int]:
        """The index of each task's first row."""
        return np.cumsum([0, *(member.job.examples for member in self._members[:-1])]).tolist()  # type: ignore[no-any-return]


def temperature_weights(tokens: Sequence[int], temperature: float) -> list[float]:
    """Return λ_t = (n_t / n_1)^(1/T) for tasks with n_t target tokens; λ_1 = 1 (Arivazhagan et al. 2019)."""
    return [(count / tokens[0]) ** (1 / temperature) for count in tokens]


class _RoundRobin(Sequence[int]):
    """The tasks 0 … count − 1 of the batches from `start` to `end`, in rotation."""

    def __init__(self, start: int, end: int, count: int) -> None:
        self._start, self._end, self._count = start, end, count

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, index: Any) -> Any:
        if index >= len(self):
            raise IndexError(index)
        return (self._start + index) % self._count


def _plans_for(job: Job, epoch: int, batches: int) -> list[BatchPlan]:
    """Return plans of a task with at least `batches` batches in total, new ones in each epoch of the first task."""
    per_epoch = max(1, len(job.plan(0)))
    number = epoch * -(-batches // per_epoch)
    plans: list[BatchPlan] = []
    while sum(map(len, plans)) < batches:
        plans.append(job.plan(number))
        number += 1
    return plans


def _together(contents: Sequence[Content]) -> Content:
    if len(contents) == 1:
        return contents[0]
    digest = hashlib.sha256(" ".join(content.fingerprint for content in contents).encode())
    return Content(", ".join(content.name for content in contents), digest.hexdigest())


def _joined(lengths: Sequence[NDArray[np.int32]], folder: Path) -> NDArray[np.int32]:
    """Concatenate arrays in an unnamed file, with the last side of each in the last column."""
    if len(lengths) == 1:
        return lengths[0]
    with tempfile.TemporaryFile(dir=folder) as file:
        for own in lengths:
            for start in range(0, len(own), _AT_ONCE):
                block = np.zeros((len(own[start : start + _AT_ONCE]), _SIDES), np.int32)
                block[:, _SIDES - own.shape[1] :] = own[start : start + _AT_ONCE]
                file.write(block.tobytes())
        file.flush()
        return np.memmap(file, np.int32, "r", shape=(sum(map(len, lengths)), _SIDES)).view(np.ndarray)
