"""The tasks of a multi-task run: their batches, weights, losses and validators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from dragoman.training.objectives.objective import FIRST, Loss, Objective, TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Job, Validator
from dragoman.training.validation import Validation


@dataclass(frozen=True)
class TaskBatch:
    """A batch with the name of its task. batch: of the task's own type."""

    task: str
    batch: Any

    @property
    def target_tokens(self) -> int:
        """The target tokens of the batch."""
        return int(self.batch.target_tokens)

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of the batch, in the numbering of its task."""
        return tuple(self.batch.rows)

    def to(self, device: torch.device) -> "TaskBatch":
        """Return the batch on `device`."""
        return replace(self, batch=self.batch.to(device))

    def split(self, count: int) -> list["TaskBatch"]:
        """Split the batch into `count` parts."""
        return [replace(self, batch=part) for part in self.batch.split(count)]


@dataclass(frozen=True)
class Member:
    """A task of the run.

    name: used in logs. job: the job of the task. weight: λ, the weight of its mean loss. body: selects the part of the
    run's model that reads the task's batches, such as a translator's decoder.
    """

    name: str
    job: Job
    weight: float
    body: Callable[[Any], Any]


@dataclass(frozen=True)
class MultiTaskObjective:
    """Computes a batch's loss with the objective of its task, times λ; the training loop computes each task's mean.

    The reported cross-entropy is not multiplied by λ.
    """

    members: Mapping[str, Member]
    objectives: Mapping[str, Objective]

    @property
    def divisible(self) -> bool:
        """Whether all objectives are divisible."""
        return all(objective.divisible for objective in self.objectives.values())

    def __call__(self, model: Any, batch: TaskBatch, point: TrainingPoint = FIRST) -> Loss:
        """Return the summed loss of a batch of one task."""
        member = self.members[batch.task]
        loss = self.objectives[batch.task](member.body(model), batch.batch, point)
        return loss if member.weight == 1 else replace(loss, total=member.weight * loss.total)


@dataclass(frozen=True)
class MultiTaskValidator:
    """Validates all tasks. The first task's measures decide; the others' are prefixed with their tasks' names."""

    validators: Mapping[str, Validator]

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model on all tasks."""
        first, *others = self.validators.items()
        validation = first[1].run(runtime)
        measures = list(validation.measures)
        seconds = validation.seconds
        for name, validator in others:
            found = validator.run(runtime)
            seconds += found.seconds
            measures += [
                replace(measure, key=f"{name}_{measure.key}", name=f"{name} {measure.name}", better=None)
                for measure in found.measures
            ]
        return replace(validation, measures=tuple(measures), seconds=seconds)
