"""The losses of models with a head, summed over labels."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.data.batches.labelled import NO_LABEL, LabelledBatch
from dragoman.models.heads.tagging import ChainOutput
from dragoman.nn.auxiliary import collecting
from dragoman.training.objectives.objective import FIRST, Loss, TrainingPoint

HeadLoss = Callable[[Any, LabelledBatch], Tensor]
"""A function that returns the summed loss of a head's outputs for a batch."""


class ClassObjectiveConfig(Config):
    """Cross-entropy of classes, which may be weighted."""

    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="ε, fraction of the target probability that is distributed over all classes."
    )
    class_weights: Literal["equal", "balanced"] = Field(
        "equal",
        description="Weights of the classes in the loss. balanced: inversely proportional to their numbers of training "
        "labels, with a mean of 1 over the labels.",
    )


class TreeObjectiveConfig(Config):
    """Cross-entropy of the symbols of generated trees. A chart is trained with a margin instead."""

    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="ε, fraction of the target probability that is distributed over all symbols."
    )


class LabelObjective:
    """The loss of a model with a head. Implements `Objective`."""

    divisible = True

    def __init__(self, loss: HeadLoss, smoothed: HeadLoss | None = None, class_weights: Tensor | None = None) -> None:
        """smoothed: the loss to minimise, if it differs from `loss`. class_weights: (C,) those of the loss, if any."""
        self._loss, self._smoothed, self.class_weights = loss, smoothed, class_weights

    def __call__(self, model: Any, batch: LabelledBatch, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of one batch."""
        with collecting(point.step) as auxiliary:
            outputs = model(*batch.model_inputs)
        loss = self._loss(outputs, batch)
        total = loss if self._smoothed is None else self._smoothed(outputs, batch)
        penalty, means = auxiliary.penalty(batch.target_tokens)
        value = loss.detach()
        return Loss(
            total + penalty,
            float(value) if value.device.type == "cpu" else value,
            batch.target_tokens,
            means,
            auxiliary.counts,
        )


def squared_error(outputs: Tensor, batch: LabelledBatch) -> Tensor:
    """Return Σ (ŷ − y)² for outputs and labels (B,)."""
    return functional.mse_loss(outputs, batch.labels.to(outputs.dtype), reduction="sum")


def class_loss(weights: Tensor | None = None, smoothing: float = 0.0) -> HeadLoss:
    """Return the cross-entropy of logits (…, C) with labels (…). weights: (C,) weights of the classes."""

    def loss(outputs: Tensor, batch: LabelledBatch) -> Tensor:
        return functional.cross_entropy(
            outputs.flatten(0, -2),
            batch.labels.flatten(),
            None if weights is None else weights.to(outputs.device),
            ignore_index=NO_LABEL,
            reduction="sum",
            label_smoothing=smoothing,
        )

    return loss


def chain_loss(outputs: ChainOutput, batch: LabelledBatch) -> Tensor:
    """Return the sum of −log p(tags | text) of a linear-chain CRF for labels (B, S).

    A row that is a part of a long sentence is a chain of its own, without start or end scores where it is cut
    (piecewise training; Sutton & McCallum 2005). Words without a label are left out.
    """
    present = batch.labels != NO_LABEL
    words = max(1, int(present.sum(1).max()))
    order = (~present).int().argsort(dim=1, stable=True)[:, :words]
    mask = present.gather(1, order)
    tags = batch.labels.gather(1, order).masked_fill(~mask, 0)
    emissions = outputs.emissions.gather(1, order.unsqueeze(2).expand(-1, -1, outputs.emissions.size(2)))
    return -outputs.chain.log_likelihoods(emissions, tags, mask, batch.cut).sum()


def span_loss(outputs: Tensor, batch: LabelledBatch) -> Tensor:
    """Return the cross-entropy of logits (B, S, 2) with the first and the last token (B, 2) of each answer.

    It is the mean over both tokens (Devlin et al. 2019, section 4.2).
    """
    return functional.cross_entropy(outputs, batch.labels, reduction="sum") / 2


def balanced_weights(counts: Sequence[int]) -> Tensor:
    """Return a weight per class (C,), N / (C · n_c) for n_c of N labels; 1 for a class without labels."""
    numbers = torch.tensor(counts, dtype=torch.float32)
    present = int((numbers > 0).sum())
    return torch.where(numbers > 0, numbers.sum() / (present * numbers.clamp_min(1)), 1.0)
