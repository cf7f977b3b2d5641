"""What training minimises: label-smoothed cross-entropy."""

from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor

from dragoman.base.config import Config
from dragoman.data.batches.batch import Batch
from dragoman.models.output import ProjectedOutput
from dragoman.models.seq2seq import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.train.objectives.cross_entropy import projected_losses
from dragoman.train.objectives.loss import Loss
from dragoman.train.objectives.r_drop import RDropConfig
from dragoman.train.objectives.reinforce import credit
from dragoman.train.objectives.reward import RewardConfig
from dragoman.train.objectives.teacher import forward


class ObjectiveConfig(Config):
    """Cross-entropy of the next token against q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="ε, probability mass moved off the reference (paper: 0.1)"
    )
    prior: Literal["uniform", "unigram"] = Field(
        "uniform", description="u, where the mass goes: every entry alike, or as frequent as in the training targets"
    )
    reward: RewardConfig | None = Field(
        None,
        description="fine-tuning on the reward of sampled translations, best from train.start; null: none",
    )
    r_drop: RDropConfig | None = Field(
        None, description="two passes under different dropout masks shall predict alike; null: a single pass"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "ObjectiveConfig":
        if self.reward is not None and self.r_drop is not None:
            raise ValueError("reward and r_drop do not go together: set one of them to null")
        return self


class Objective:
    """Returns summed losses, so that accumulated parts and ranks add up to one big batch.

    What modules sampled is rewarded with minus the very loss that is minimised, smoothing included: so the gradient is
    an unbiased estimate of that of the expected loss.

    prior: (V,) probabilities u for the smoothing term; None means uniform. divisible: whether threads may compute it on
    parts of a batch at one time.
    """

    divisible = True

    def __init__(self, config: ObjectiveConfig, prior: Tensor | None = None) -> None:
        self.smoothing = config.label_smoothing
        self.prior = prior

    def __call__(self, model: Seq2Seq, batch: Batch, teacher_ratio: float = 1.0) -> Loss:
        """One batch. teacher_ratio: the share of input tokens that are the reference's, see `teacher`."""
        with collecting() as auxiliary:
            output = forward(model, batch, teacher_ratio)
        return self.judge(output, batch, auxiliary)

    def judge(self, output: ProjectedOutput, batch: Batch, auxiliary: Auxiliary, alpha: float | None = None) -> Loss:
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
        )
        penalty, means = auxiliary.penalty(batch.target_tokens)
        if losses.each is not None:
            rewards = losses.each.new_zeros(batch.labels.shape)
            rewards[batch.target_keep] = -losses.each
            credited = credit(auxiliary.decisions, rewards, batch.target_keep)
            penalty, means = penalty + credited.total, {**means, **credited.means}
        if losses.divergence is not None:
            means = {**means, "r_drop": 2 * float(losses.divergence) / batch.target_tokens}
        plain = losses.cross_entropy
        told = float(plain) if plain.device.type == "cpu" else plain
        return Loss(losses.total + penalty, told, batch.target_tokens, means, auxiliary.counts)
