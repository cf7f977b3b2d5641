"""`MultiTaskJob`, a job with several tasks, whose batches are mixed in every update."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.data.batches.plan import BatchPlan
from dragoman.data.held_out.check import Finding
from dragoman.tasks.multitask.members import Member, MultiTaskValidator, TaskBatch
from dragoman.tasks.multitask.mixture import TaskMixture, plans_for
from dragoman.tasks.multitask.plan import Interleaved
from dragoman.training.task import Job
from dragoman.training.validation import Validation


class MultiTaskJob(TaskMixture):
    """Trains a main task and auxiliary tasks. Every update minimises Σ λ_t L_t, where L_t is the mean loss of task t.

    An update consists of `train.accumulate` batches of each task. The first task is the main task: it determines
    the epochs, the model, the model folder and the best checkpoint.
    """

    def __init__(self, first: Job, name: str) -> None:
        """first: the job of the first task. name: the first task's name in logs. Add the other tasks with `join`."""
        self._first, self._name = first, name
        self._members = [Member(name, first, 1.0, lambda model: model)]

    @property
    def _scratch(self) -> Path:
        """The folder for temporary files."""
        return Path(self.run.out.parent / "prepared")

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

    def check_held_out(self) -> Iterator[Finding]:
        """Yield the problems of the held-out examples of the first task."""
        return self._first.check_held_out()

    def prepare(self) -> None:
        """Prepare the examples of every task. Subclasses prepare the first task, then the others, and call `join`."""
        for member in self._members:
            member.job.prepare()

    def choose_batches(self, packed: bool, few_shapes: bool) -> None:
        """Choose the batches of the first task."""
        self._first.choose_batches(packed, few_shapes)

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

    def card_samples(self) -> Mapping[str, Sequence[str]]:
        """Return texts of the first task."""
        return self._first.card_samples()

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Return the estimate of the first task's job, because the first task uses the whole model."""
        return self._first.activation_bytes(model, tokens, free)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan an epoch in which the batches of all tasks alternate."""
        first = self._first.plan(epoch)
        plans = [[first], *(plans_for(member.job, epoch, len(first)) for member in self._members[1:])]
        return BatchPlan(Interleaved(plans, self._starts), first.padding_waste)

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the share of padding in the first task's batches."""
        return f"{self._first.padding(plan)} in the task {self._name}"

    @property
    def batches_per_update(self) -> int:
        """Number of batches per update; each task contributes the same number."""
        return self._first.batches_per_update * len(self._members)

    def trial(self, model: Any) -> TaskBatch:
        """Return a trial batch of the first task, which uses the whole model."""
        return TaskBatch(self._name, self._first.trial(model))

    def validator(self, model: Any, device: torch.device) -> MultiTaskValidator:
        """Return a validator for all tasks."""
        return MultiTaskValidator(
            {member.name: member.job.validator(member.body(model), device) for member in self._members}
        )

    def measure(self, folder: Path) -> None:
        """See `Job.measure`; measured by the first task."""
        self._first.measure(folder)


def temperature_weights(tokens: Sequence[int], temperature: float) -> list[float]:
    """Return λ_t = (n_t / n_1)^(1/T) for each task t with n_t target tokens; λ_1 = 1 (Arivazhagan et al. 2019)."""
    return [(count / tokens[0]) ** (1 / temperature) for count in tokens]
