"""`Update` and `StepResult`: the input and the outcome of one parameter update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.training.task import Batch

Rows = NDArray[np.int64]

Tokens = Mapping[str, int]
"""What the loss of each task is divided by: the target tokens of all its batches of an update, of all ranks."""


@dataclass(frozen=True)
class MicroBatch:
    """What a rank computes at once. rows: of the corpus; key: what seeds its draws, beside the run's seed and the step.

    real: False for a stand-in that adds nothing: every rank must make equally many passes, because in each of them the
    ranks meet.
    """

    rows: Rows
    key: tuple[int, ...]
    real: bool = True


@dataclass(frozen=True)
class Update:
    """batches: what this process computes; micro_batches: what each of them is, None in a run of one process.

    count: batches of the epoch's plan that the update is made of, by all ranks. tokens: of all ranks; None in a run of
    one process, which has them all.
    """

    batches: Sequence[Batch]
    micro_batches: Sequence[MicroBatch] | None = None
    count: int = 1
    tokens: Tokens | None = None


@dataclass(frozen=True)
class StepResult:
    """Means over the update's target tokens (nats), the gradient's norm before clipping, and the token count.

    gradient_norm: 0 where the gradient was beyond float16 and nothing was updated, which counts says too.

    Where an update mixes tasks, loss and cross_entropy are the sums of their means; losses: the mean cross-entropy of
    each. auxiliary: means of what modules add to the loss or report of it, by name; counts: sums of what modules count.
    """

    loss: float
    cross_entropy: float
    gradient_norm: float
    target_tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
