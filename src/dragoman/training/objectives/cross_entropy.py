"""What training minimises: label-smoothed cross-entropy."""

from typing import Any, Literal

from pydantic import Field
from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.models.family import ProjectedOutput
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.training.objectives.fused_cross_entropy import projected_losses
from dragoman.training.objectives.objective import FIRST, Loss, TrainingPoint
from dragoman.training.objectives.r_drop import RDropConfig
from dragoman.training.objectives.reinforce import credit


class CrossEntropyConfig(Config):
    """Cross-entropy of the next token against q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="ε, probability mass moved off the reference (paper: 0.1)"
    )
    prior: Literal["uniform", "unigram"] = Field(
        "uniform", description="u, where the mass goes: every entry alike, or as frequent as in the training targets"
    )
    r_drop: RDropConfig | None = Field(
        None, description="two passes under different dropout masks shall predict alike; null: a single pass"
    )


class CrossEntropy:
    """Returns summed losses, so that accumulated parts and ranks add up to one big batch.

    What modules sampled is rewarded with minus the very loss that is minimised, smoothing included: so the gradient is
    an unbiased estimate of that of the expected loss.

    prior: (V,) probabilities u for the smoothing term; None means uniform. divisible: whether threads may compute it on
    parts of a batch at one time.
    """

    divisible = True

    def __init__(self, config: CrossEntropyConfig, prior: Tensor | None = None) -> None:
        self.smoothing = config.label_smoothing
        self.prior = prior

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """One batch of the model's kind; point: in the run."""
        with collecting(point.step) as auxiliary:
            output = self.predict(model, batch, point)
        return self.judge(output, batch, auxiliary)

    def predict(self, model: Any, batch: Any, point: TrainingPoint) -> ProjectedOutput:
        """What the model puts out for each target token: it reads all of the batch at once (teacher forcing)."""
        return model(*batch.reads)  # type: ignore[no-any-return]

    def judge(self, output: ProjectedOutput, batch: Any, auxiliary: Auxiliary, alpha: float | None = None) -> Loss:
        """The loss of what a model has put out for `batch` and of what its modules have told.

        alpha: None, or the weight of the divergence between the batch's halves, which are the same pairs: see `RDrop`.
        """
        predictions, labels = output.at(batch.target_places), batch.at_targets(batch.labels)
        losses = projected_losses(
            predictions.hidden,
            predictions.weight,
            labels,
            self.smoothing,
            self.prior,
            bool(auxiliary.decisions),
            alpha,
            predictions.bias,
        )
        penalty, means = auxiliary.penalty(batch.target_tokens)
        if losses.each is not None:
            rewards = losses.each.new_zeros(batch.labels.shape)
            rewards[batch.target_mask] = -losses.each
            credited = credit(auxiliary.decisions, rewards, batch.target_mask)
            penalty, means = penalty + credited.total, {**means, **credited.means}
        if losses.divergence is not None:
            means = {**means, "r_drop": 2 * float(losses.divergence) / batch.target_tokens}
        plain = losses.cross_entropy
        told = float(plain) if plain.device.type == "cpu" else plain
        return Loss(losses.total + penalty, told, batch.target_tokens, means, auxiliary.counts)
