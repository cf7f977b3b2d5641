"""`Update` and `StepResult`: the input and the result of one parameter update."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.training.task import Batch

Rows = NDArray[np.int64]

Tokens = Mapping[str, int]
"""Number of target tokens by task in an update, over all ranks. The loss of each task is divided by this number."""


@dataclass(frozen=True)
class MicroBatch:
    """The part of an update that a rank computes in one pass.

    rows: row numbers in the corpus. key: part of the random seed. real: False for a placeholder that contributes
    nothing. Placeholders are needed because ranks synchronise in every pass, so all of them must make the same number
    of passes.
    """

    rows: Rows
    key: tuple[int, ...]
    real: bool = True


@dataclass(frozen=True)
class Update:
    """The input of an update.

    batches: the batches that this process computes. micro_batches: their descriptions, or None in a single-process run.
    count: number of planned batches in the update, over all ranks. tokens: number of target tokens over all ranks, or
    None in a single-process run, where they are counted later.
    """

    batches: Sequence[Batch]
    micro_batches: Sequence[MicroBatch] | None = None
    count: int = 1
    tokens: Tokens | None = None


class LateScalars:
    """Scalars that a device is still computing, which can be read without waiting for what it is given afterwards."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        """tensors: scalars of one device."""
        self._tensors, self._event = list(tensors), None
        if self._tensors[0].device.type == "cuda":
            self._tensors = list(torch.stack([each.float() for each in tensors]).to("cpu", non_blocking=True))
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record()

    def read(self) -> list[Tensor]:
        """Wait for the scalars and return them, on the CPU if they are on a GPU."""
        if self._event is not None:
            self._event.synchronize()
        return self._tensors


@dataclass(frozen=True)
class StepResult:
    """The result of an update: means over its target tokens (nats), gradient norm, and number of target tokens.

    gradient_norm: norm before clipping; 0 if the gradient overflowed float16 and the update was skipped, which is also
    recorded in `counts`. auxiliary: means of auxiliary losses by name. counts: module counters by name.

    If an update mixes several tasks, `loss` and `cross_entropy` are the sums of the tasks' means, and `losses` contains
    the mean cross-entropy of each task.
    """

    loss: float
    cross_entropy: float
    gradient_norm: float
    target_tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)


class LaunchedUpdate(NamedTuple):
    """An update that a GPU may still be computing. target_tokens: as in `StepResult`. result: waits for the result."""

    target_tokens: int
    result: Callable[[], StepResult]
