"""`TaskBatch`: a batch that says which of several tasks it is of."""

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
    """task: its name; batch: of the task's own kind."""

    task: str
    batch: Any

    @property
    def target_tokens(self) -> int:
        """Of the batch."""
        return int(self.batch.target_tokens)

    @property
    def rows(self) -> tuple[int, ...]:
        """Of the batch, in the numbering of its task."""
        return tuple(self.batch.rows)

    def to(self, device: torch.device) -> "TaskBatch":
        """The same batch on `device`."""
        return replace(self, batch=self.batch.to(device))

    def split(self, count: int) -> list["TaskBatch"]:
        """Parts of the batch."""
        return [replace(self, batch=part) for part in self.batch.split(count)]


@dataclass(frozen=True)
class Member:
    """name: in logs; job: of the task; weight: λ of its mean loss in the sum of all tasks' losses.

    body: what of the run's model the task reads its batches with, such as a translator's decoder alone.
    """

    name: str
    job: Job
    weight: float
    body: Callable[[Any], Any]


@dataclass(frozen=True)
class MultiTaskObjective:
    """The summed loss of a batch by its own task's objective, times λ; the engine takes each task's mean.

    What is reported of it, its cross-entropy, is without λ.
    """

    members: Mapping[str, Member]
    objectives: Mapping[str, Objective]

    @property
    def divisible(self) -> bool:
        """Where all are."""
        return all(objective.divisible for objective in self.objectives.values())

    def __call__(self, model: Any, batch: TaskBatch, point: TrainingPoint = FIRST) -> Loss:
        """One batch of one task."""
        member = self.members[batch.task]
        loss = self.objectives[batch.task](member.body(model), batch.batch, point)
        return loss if member.weight == 1 else replace(loss, total=member.weight * loss.total)


@dataclass(frozen=True)
class MultiTaskValidator:
    """The first task's measures decide as they do alone; the others' stand behind them under their tasks' names."""

    validators: Mapping[str, Validator]

    def run(self, runtime: Runtime) -> Validation:
        """Judge the model on all tasks."""
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
