"""Label-smoothed cross-entropy."""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.models.families.family import ProjectedOutput
from dragoman.nn.auxiliary import Auxiliary, collecting, expected_values
from dragoman.training.objectives.fused_cross_entropy import projected_losses
from dragoman.training.objectives.objective import (
    FIRST,
    Loss,
    LossContext,
    ObjectiveConfig,
    Predict,
    TrainingPoint,
    teacher_forcing,
)
from dragoman.training.objectives.reinforce import credit


class LabelSmoothingConfig(ObjectiveConfig):
    """Base class of losses with label smoothing: q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="ε, probability mass moved away from the reference token (paper: 0.1)."
    )
    prior: Literal["uniform", "unigram"] = Field(
        "uniform",
        description="u, distribution of the moved probability mass: uniform, or the token frequencies of the training "
        "targets.",
    )

    def cross_entropy(self, context: LossContext) -> "CrossEntropy":
        """Build the label-smoothed cross-entropy."""
        prior = None if self.prior == "uniform" else context.unigram()
        return CrossEntropy(self.label_smoothing, prior, context.predict)


class CrossEntropyConfig(LabelSmoothingConfig):
    """Cross-entropy of the next token against q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    kind: Literal["cross_entropy"] = "cross_entropy"

    def build(self, context: LossContext) -> "CrossEntropy":
        """Build the label-smoothed cross-entropy."""
        return self.cross_entropy(context)


class CrossEntropy:
    """Label-smoothed cross-entropy, summed over target tokens.

    Modules that sample (hard attention) receive the negative of exactly this loss as reward, including the smoothing
    term, so that their gradient is an unbiased estimate of the gradient of the expected loss. If they request it, the
    reward is relative to the reward of their expected values.

    label_smoothing: ε. prior: (V,) probabilities u of the smoothing term; None means uniform. predict: runs the model
    on a batch.
    """

    divisible = True

    def __init__(
        self, label_smoothing: float = 0.1, prior: Tensor | None = None, predict: Predict = teacher_forcing
    ) -> None:
        self.smoothing, self.prior, self.predict = label_smoothing, prior, predict

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of one batch."""
        with collecting(point.step) as auxiliary:
            output = self.predict(model, batch, point)
        return self.loss(output, batch, auxiliary, baseline=self.baseline(model, batch, point, auxiliary))

    @property
    def is_static(self) -> bool:
        """See `StaticObjective`. Subclasses are not static."""
        return type(self) is CrossEntropy and self.predict is teacher_forcing

    def static_sums(self, model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        """See `StaticObjective`."""
        output, packing = model(*batch.model_inputs), batch.packing
        labels, counted = batch.labels.flatten(), batch.target_mask.flatten()
        if packing is not None:
            labels, counted = labels.index_select(0, packing.padded), packing.tokens[0]
        losses = projected_losses(
            output.hidden.flatten(0, 1),
            output.projection.weight,
            labels,
            self.smoothing,
            self.prior,
            bias=output.projection.bias,
            counted=counted,
        )
        return losses.total, losses.cross_entropy

    def baseline(self, model: Any, batch: Any, point: TrainingPoint, auxiliary: Auxiliary) -> Tensor | None:
        """Return the loss (N,) of each target token if all random decisions are replaced by their expected values.

        Return None if no module that reported to `auxiliary` has requested this baseline.
        """
        if not any(call.has_expected_baseline for calls in auxiliary.decisions.values() for call in calls):
            return None
        with torch.no_grad(), expected_values():
            predictions = self.predict(model, batch, point).at(batch.target_positions)
            labels = batch.select_targets(batch.labels)
            hidden, weight, bias = predictions.hidden, predictions.weight, predictions.bias
            return projected_losses(hidden, weight, labels, self.smoothing, self.prior, per_row=True, bias=bias).per_row

    def loss(
        self,
        output: ProjectedOutput,
        batch: Any,
        auxiliary: Auxiliary,
        alpha: float | None = None,
        baseline: Tensor | None = None,
    ) -> Loss:
        """Compute the loss of a model's output for `batch`, with the auxiliary losses reported by its modules.

        alpha: None, or the weight of the divergence between the two halves of the batch, which contain the same
        examples (see `RDrop`). baseline: the result of `baseline`.
        """
        predictions, labels = output.at(batch.target_positions), batch.select_targets(batch.labels)
        losses = projected_losses(
            predictions.hidden,
            predictions.weight,
            labels,
            self.smoothing,
            self.prior,
            per_row=bool(auxiliary.decisions),
            alpha=alpha,
            bias=predictions.bias,
        )
        penalty, means = auxiliary.penalty(batch.target_tokens)
        if losses.per_row is not None:
            rewards = losses.per_row.new_zeros(batch.labels.shape)
            rewards[batch.target_mask] = -losses.per_row if baseline is None else baseline - losses.per_row
            policy = credit(auxiliary.decisions, rewards, batch.target_mask)
            penalty, means = penalty + policy.total, {**means, **policy.means}
        if losses.divergence is not None:
            means = {**means, "r_drop": 2 * float(losses.divergence) / batch.target_tokens}
        unsmoothed = losses.cross_entropy
        cross_entropy = float(unsmoothed) if unsmoothed.device.type == "cpu" else unsmoothed
        return Loss(losses.total + penalty, cross_entropy, batch.target_tokens, means, auxiliary.counts)
