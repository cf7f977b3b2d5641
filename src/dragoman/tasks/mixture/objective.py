"""`MixedObjective`: Σ λ_t L_t over tasks that share a body."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dragoman.tasks.mixture.batch import TaskBatch
from dragoman.tasks.mixture.member import Member
from dragoman.training.objectives.loss import FIRST, Loss, LossOf, Moment


@dataclass(frozen=True)
class MixedObjective:
    """The summed loss of a batch by its own task's objective, times λ; the engine takes each task's mean.

    What is reported of it, its cross-entropy, is without λ.
    """

    members: Mapping[str, Member]
    objectives: Mapping[str, LossOf]

    @property
    def divisible(self) -> bool:
        """Where all are."""
        return all(objective.divisible for objective in self.objectives.values())

    def __call__(self, model: Any, batch: TaskBatch, moment: Moment = FIRST) -> Loss:
        """One batch of one task."""
        member = self.members[batch.task]
        loss = self.objectives[batch.task](member.body(model), batch.batch, moment)
        return loss if member.weight == 1 else replace(loss, total=member.weight * loss.total)
