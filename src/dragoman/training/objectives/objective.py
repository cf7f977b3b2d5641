"""`Objective`: the function that training minimises, the config that builds it, and the `Loss` that it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.models.families.family import ProjectedOutput
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TrainingPoint:
    """The position of an update in its run.

    step: number of the update, from 1. progress: completed fraction of the run (0…1). dropout: fraction of the
    configured dropout rates that is in effect (0…1).
    """

    step: int = 1
    progress: float = 0.0
    dropout: float = 1.0


FIRST = TrainingPoint()
END = TrainingPoint(1 << 40, 1.0)
"""A point after the last update, at which all schedules have reached their final values."""


@dataclass(frozen=True)
class Loss:
    """The loss of a batch, summed over its target tokens.

    total: the loss to minimise (scalar, differentiable). cross_entropy: its cross-entropy part (nats); on a GPU this
    remains a tensor, so that the CPU does not wait before the value is needed. tokens: number of tokens to divide by.
    auxiliary: unweighted per-token means of auxiliary losses, by name. counts: module counters, by name.
    """

    total: Tensor
    cross_entropy: float | Tensor
    tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Tensor] = field(default_factory=dict)


class Objective(Protocol):
    """A function that computes the loss of a model on a batch.

    The loss is a sum, so that the losses of micro-batches, threads, ranks and tasks can be added.

    divisible: whether threads may compute the objective on parts of a batch at the same time. If so, all random numbers
    must come from `nn.randomness`, as in `nn.dropout.Dropout`.
    """

    @property
    def divisible(self) -> bool: ...

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of `model` on `batch` at `point` of the run. The task determines the types of both."""
        ...


@runtime_checkable
class StaticObjective(Protocol):
    """An objective whose computation may be recorded and repeated for other batches of the same shape.

    is_static: whether the loss depends only on the tensors of a batch, and not on the position in the run.
    """

    @property
    def is_static(self) -> bool: ...

    def static_sums(self, model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the summed loss and the summed cross-entropy of a batch, both as tensors.

        Filler and padding are computed and left out of the sums, so that the shapes do not depend on the number of
        tokens. Auxiliary losses are not included.
        """
        ...


Predict = Callable[[Any, Any, TrainingPoint], ProjectedOutput]
"""A function that runs a model on a batch and returns its output at every target position."""


def teacher_forcing(model: Any, batch: Any, point: TrainingPoint) -> ProjectedOutput:
    """Run the model on the whole reference in one pass."""
    return model(*batch.model_inputs)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LossContext:
    """The values that a task provides for building a loss.

    target: the tokenizer of the labels. count_targets: a function from the vocabulary size V to the number of
    occurrences of each entry in the training targets (V,). device: the model's device. predict: a function that runs
    the model on a batch. bleu_tokenizer: the tokeniser of a BLEU reward; `auto`: by each reference. links: a function
    from the settings of a word aligner to the links of the training pairs; None if the task has no pairs of texts.
    """

    target: Tokenizer
    count_targets: Callable[[int], NDArray[Any]]
    device: torch.device
    predict: Predict = teacher_forcing
    bleu_tokenizer: str = "auto"
    links: Callable[[Any], Any] | None = None

    def unigram(self) -> Tensor:
        """Return the relative frequencies (V,) of the vocabulary entries in the training targets."""
        counts = self.count_targets(self.target.size).astype(np.float64)
        return torch.from_numpy(counts / counts.sum()).float().to(self.device)


class ObjectiveConfig(Config):
    """Base class of loss configs. A subclass has a `kind` and is listed in the union of each task that supports it."""

    @property
    def passes(self) -> int:
        """Number of forward passes over each example in an update, used to estimate memory and FLOPs."""
        return 1

    @property
    def decodes(self) -> bool:
        """Whether the model decodes token by token during training, which is incompatible with `train.compile`."""
        return False

    @property
    def records_attention(self) -> bool:
        """Whether the loss depends on recorded attention weights, which is incompatible with `train.compile`."""
        return False

    def build(self, context: LossContext) -> Objective:
        """Build the loss."""
        raise NotImplementedError
