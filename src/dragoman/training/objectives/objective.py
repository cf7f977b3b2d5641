"""`Objective`: the function that training minimises, the config that builds it, and the `Loss` that it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.log import warn
from dragoman.base.settings.config import Config
from dragoman.models.family import ProjectedOutput
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TrainingPoint:
    """The position of an update in its run.

    step: the number of the update, from 1; progress: the share of the run that is done (0…1); dropout: the share of
    the configured dropout rates that is in effect (0…1).
    """

    step: int = 1
    progress: float = 0.0
    dropout: float = 1.0


FIRST = TrainingPoint()
END = TrainingPoint(1 << 40, 1.0)
"""A point after the last update, where schedules have reached their final values."""


@dataclass(frozen=True)
class Loss:
    """Sums over a batch: total (scalar, differentiable), its cross-entropy part (nats), and the tokens to divide by.

    cross_entropy: remains a tensor on a GPU, so that nothing blocks before the value is needed. auxiliary: per-token
    means of auxiliary losses by name, unweighted. counts: counters of modules by name.
    """

    total: Tensor
    cross_entropy: float | Tensor
    tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Tensor] = field(default_factory=dict)


class Objective(Protocol):
    """Computes the summed loss of a model on a batch, so that micro-batches, threads, ranks and tasks add up.

    divisible: whether threads may compute it on parts of a batch at the same time. Random draws must then come from
    `nn.randomness`, as in `nn.dropout.Dropout`.
    """

    @property
    def divisible(self) -> bool: ...

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of `model` on `batch`, both of the task's types, at `point` of the run."""
        ...


Predict = Callable[[Any, Any, TrainingPoint], ProjectedOutput]
"""A function that runs a model on a batch and returns its output at every target position."""


def teacher_forcing(model: Any, batch: Any, point: TrainingPoint) -> ProjectedOutput:
    """Run the model on the whole reference in one pass."""
    return model(*batch.model_inputs)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LossContext:
    """The context in which a task builds a loss.

    target: the tokenizer of the labels. count_targets: returns how often each of V vocabulary entries occurs in the
    training targets (V,). device: device of the model. predict: runs the model on a batch.
    """

    target: Tokenizer
    count_targets: Callable[[int], NDArray[Any]]
    device: torch.device
    predict: Predict = teacher_forcing

    def unigram(self) -> Tensor:
        """Return the relative frequencies (V,) of the vocabulary's entries in the training targets."""
        counts = self.count_targets(self.target.size).astype(np.float64)
        return torch.from_numpy(counts / counts.sum()).float().to(self.device)


class ObjectiveConfig(Config):
    """Base class of the configs of losses. Subclasses have a `kind` and are listed in the unions of suitable tasks."""

    @property
    def passes(self) -> int:
        """Number of forward passes over each example in an update, for the estimates of memory and FLOPs."""
        return 1

    @property
    def decodes(self) -> bool:
        """Whether the model reads its own output token by token, which excludes `train.compile`."""
        return False

    def build(self, context: LossContext) -> Objective:
        """Build the loss."""
        raise NotImplementedError


def former_section(section: str, kind: str, renamed: Mapping[str, str] | None = None) -> Callable[[Any], Any]:
    """Return a validator that reads the deprecated form of a loss, a section instead of a `kind`.

    `{label_smoothing: 0.1, r_drop: {alpha: 5}}` is read as `{kind: r_drop, label_smoothing: 0.1, alpha: 5}`, with one
    warning that names the new form. renamed: new names of keys of the section. Raises ValueError if another kind is
    set as well.
    """

    def read(settings: Any) -> Any:
        if not isinstance(settings, Mapping) or section not in settings:
            return settings
        settings = dict(settings)
        inner = settings.pop(section)
        if inner is None:
            return settings
        if not isinstance(inner, Mapping):
            raise ValueError(f"{section} is a group of settings, or null, not {inner!r}")
        if settings.get("kind", _DEFAULT) not in (_DEFAULT, kind):
            raise ValueError(f"{section} does not go together with kind {settings['kind']}: remove one of them")
        _warn_of_former_section(section, kind)
        return {**settings, **{(renamed or {}).get(key, key): value for key, value in inner.items()}, "kind": kind}

    return read


_DEFAULT = "cross_entropy"


@cache
def _warn_of_former_section(section: str, kind: str) -> None:
    warn(f"objective.{section} is deprecated: write objective: {{kind: {kind}, …}} with the same settings")
