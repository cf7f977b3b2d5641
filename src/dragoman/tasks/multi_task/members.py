"""The tasks of a multi-task run: their batches, weights and losses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dragoman.training.objectives.objective import FIRST, Loss, Objective, TrainingPoint
from dragoman.training.task import Job


@dataclass(frozen=True)
class TaskBatch:
    """A batch and the name of its task. The type of `batch` depends on the task."""

    task: str
    batch: Any

    @property
    def target_tokens(self) -> int:
        """Number of target tokens of the batch."""
        return int(self.batch.target_tokens)

    @property
    def rows(self) -> tuple[int, ...]:
        """Row numbers of the examples among the rows of the batch's task."""
        return tuple(self.batch.rows)

    def to(self, device: torch.device) -> "TaskBatch":
        """Return the batch on `device`."""
        return replace(self, batch=self.batch.to(device))

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> "TaskBatch":
        """Apply a function to all tensors."""
        return replace(self, batch=self.batch.map_tensors(function))

    def split(self, count: int) -> list["TaskBatch"]:
        """Split the batch into `count` parts."""
        return [replace(self, batch=part) for part in self.batch.split(count)]


@dataclass(frozen=True)
class TaskMember:
    """A task of the run.

    name: name of the task in logs. job: the job of the task. weight: λ, the weight of its mean loss. part: returns the
    part of the run's model that the task trains, such as the decoder of a translation model.
    """

    name: str
    job: Job
    weight: float
    part: Callable[[Any], Any]


@dataclass(frozen=True)
class MultiTaskObjective:
    """Computes the loss of a batch with the objective of its task, and multiplies it by λ.

    The loss is summed over the batch; the training loop computes the mean of each task. The reported cross-entropy is
    not multiplied by λ.
    """

    members: Mapping[str, TaskMember]
    objectives: Mapping[str, Objective]

    @property
    def divisible(self) -> bool:
        """True if all objectives are divisible."""
        return all(objective.divisible for objective in self.objectives.values())

    @property
    def is_static(self) -> bool:
        """See `StaticObjective`."""
        return all(getattr(objective, "is_static", False) for objective in self.objectives.values())

    def static_sums(self, model: Any, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """See `StaticObjective`. The summed loss is multiplied by λ."""
        member, objective = self.members[batch.task], self.objectives[batch.task]
        total, cross_entropy = objective.static_sums(member.part(model), batch.batch)  # type: ignore[attr-defined]
        return member.weight * total, cross_entropy

    def __call__(self, model: Any, batch: TaskBatch, point: TrainingPoint = FIRST) -> Loss:
        """Return the loss of a batch of one task, summed over the batch and multiplied by λ."""
        member = self.members[batch.task]
        loss = self.objectives[batch.task](member.part(model), batch.batch, point)
        return loss if member.weight == 1 else replace(loss, total=member.weight * loss.total)
