"""`Loss`: what an objective tells of a batch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from dragoman.data.batches.batch import Batch
from dragoman.models.seq2seq import Seq2Seq


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


LossOf = Callable[[Seq2Seq, Batch, float], Loss]
"""An objective: the summed loss of a model on a batch, with a teacher ratio."""
