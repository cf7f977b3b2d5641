"""`Update`: what one update of the parameters is computed from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
