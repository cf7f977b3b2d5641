"""`Update` and `StepResult`: the input and the outcome of one parameter update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.training.task import Batch

Rows = NDArray[np.int64]

Tokens = Mapping[str, int]
"""The number of target tokens of each task in an update, over all ranks, by which the tasks' losses are divided."""


@dataclass(frozen=True)
class MicroBatch:
    """The part of an update that a rank computes in one pass. rows: rows of the corpus; key: part of its random seed.

    real: False for a placeholder that contributes nothing. All ranks must make the same number of passes, because they
    synchronise in each.
    """

    rows: Rows
    key: tuple[int, ...]
    real: bool = True


@dataclass(frozen=True)
class Update:
    """The input of an update.

    batches: the batches that this process computes; micro_batches: their descriptions, or None in a run of one process.
    count: number of the epoch's planned batches in the update, over all ranks. tokens: number of target tokens over all
    ranks; None in a run of one process, which counts them itself.
    """

    batches: Sequence[Batch]
    micro_batches: Sequence[MicroBatch] | None = None
    count: int = 1
    tokens: Tokens | None = None


@dataclass(frozen=True)
class StepResult:
    """Means over the update's target tokens (nats), the gradient's norm before clipping, and the token count.

    gradient_norm: 0 if the gradient overflowed float16 and the update was skipped, which `counts` reports too.
    auxiliary: means of auxiliary losses by name; counts: counters of modules by name.

    If an update mixes tasks, loss and cross_entropy are the sums of their means; losses: the mean cross-entropy of each
    task.
    """

    loss: float
    cross_entropy: float
    gradient_norm: float
    target_tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
