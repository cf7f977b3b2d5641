"""`Loss`: what an objective tells of a batch, and what an objective is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True)
class TrainingPoint:
    """Where in a run an update is. step: its number, from 1; progress: the share (0…1) of the run that is done then.

    dropout: the share (0…1) of their rates at which modules drop.
    """

    step: int = 1
    progress: float = 0.0
    dropout: float = 1.0


FIRST = TrainingPoint()
END = TrainingPoint(1 << 40, 1.0)
"""Later than any update: what changes in the course of a run has then changed."""


@dataclass(frozen=True)
class Loss:
    """Sums over a batch: total (scalar, differentiable), its cross-entropy part (nats), and the tokens to divide by.

    cross_entropy: a tensor on a GPU, so that nobody waits for it before it is needed.
    auxiliary: means of what modules add to the loss, by name, without their weights. counts: what modules count.
    """

    total: Tensor
    cross_entropy: float | Tensor
    tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Tensor] = field(default_factory=dict)


class Objective(Protocol):
    """An objective: the summed loss of a model on a batch, so that micro-batches, threads, ranks and tasks add up.

    divisible: whether threads may compute it on parts of a batch at one time; what draws at random must then do so
    from `nn.randomness`, as `nn.dropout.Dropout` does.
    """

    @property
    def divisible(self) -> bool: ...

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """model: what the task has built, on a batch of the task's, at a moment of the run."""
        ...
