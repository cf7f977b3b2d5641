"""R-Drop: two passes under different dropout masks shall predict alike."""

from dataclasses import replace
from typing import Protocol

import torch
from pydantic import Field

from dragoman.base.config import Config
from dragoman.data.batches.batch import Batch
from dragoman.models.output import ProjectedOutput
from dragoman.models.seq2seq import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.train.objectives.loss import Loss
from dragoman.train.objectives.teacher import forward


class RDropConfig(Config):
    """Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", equations 2 to 4.

    −log p₁(y) − log p₂(y) + α · ½ (KL(p₁‖p₂) + KL(p₂‖p₁)) a token, p₁ and p₂ from two passes with dropout masks of
    their own, smoothed where label_smoothing says so. What is minimised is half of it, so that α = 0 gives the loss
    of a single pass, over twice the batch. An update takes 2.3 to 2.4 times as long on a CPU.
    YAML: `train: {objective: {r_drop: {alpha: 5}}}`.
    """

    alpha: float = Field(5.0, ge=0, description="α, weight of the divergence between the two passes (paper: 5)")


class Judge(Protocol):
    """An objective that can be asked for the loss of an output; divisible: as of `Objective`."""

    divisible: bool

    def judge(self, output: ProjectedOutput, batch: Batch, auxiliary: Auxiliary, alpha: float | None) -> Loss:
        """As `Objective.judge`."""
        ...


class RDrop:
    """Half the sum of an objective's losses of two passes, and α/2 times their divergence, summed over target tokens.

    Both passes are made at once, the batch standing twice in one. `Loss.auxiliary` holds the mean divergence a token as
    `r_drop` (nats); what modules count, they count in both passes.
    """

    def __init__(self, objective: Judge, config: RDropConfig) -> None:
        self.objective, self.alpha = objective, config.alpha
        self.divisible = objective.divisible

    def __call__(self, model: Seq2Seq, batch: Batch, teacher_ratio: float = 1.0) -> Loss:
        """One batch; teacher_ratio as for the objective."""
        both = twice(batch)
        with collecting() as auxiliary:
            output = forward(model, both, teacher_ratio)
        loss = self.objective.judge(output, both, auxiliary, self.alpha)
        return replace(loss, total=loss.total / 2, cross_entropy=loss.cross_entropy / 2, tokens=batch.target_tokens)


def twice(batch: Batch) -> Batch:
    """All pairs, then all of them again."""
    names = ("source", "source_keep", "inputs", "labels", "target_keep")
    tensors = {name: torch.cat([getattr(batch, name)] * 2) for name in names}
    return replace(batch, **tensors, target_tokens=2 * batch.target_tokens, rows=2 * batch.rows)
