"""R-Drop: two passes under different dropout masks shall predict alike."""

from dataclasses import replace
from typing import Any, Protocol

from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.models.family import ProjectedOutput
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.training.objectives.objective import FIRST, Loss, TrainingPoint


class RDropConfig(Config):
    """Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", equations 2 to 4.

    −log p₁(y) − log p₂(y) + α · ½ (KL(p₁‖p₂) + KL(p₂‖p₁)) a token, p₁ and p₂ from two passes with dropout masks of
    their own, smoothed where label_smoothing says so. What is minimised is half of it, so that α = 0 gives the loss
    of a single pass, over twice the batch. An update takes 2.3 to 2.4 times as long on a CPU.
    YAML: `train: {objective: {r_drop: {alpha: 5}}}`.
    """

    alpha: float = Field(5.0, ge=0, description="α, weight of the divergence between the two passes (paper: 5)")


class Judge(Protocol):
    """An objective that can be asked for the loss of an output; divisible: as of `CrossEntropy`."""

    divisible: bool

    def predict(self, model: Any, batch: Any, point: TrainingPoint) -> ProjectedOutput:
        """As `CrossEntropy.predict`."""
        ...

    def judge(self, output: ProjectedOutput, batch: Any, auxiliary: Auxiliary, alpha: float | None) -> Loss:
        """As `CrossEntropy.judge`."""
        ...


class RDrop:
    """Half the sum of an objective's losses of two passes, and α/2 times their divergence, summed over target tokens.

    Both passes are made at once, the batch standing twice in one. `Loss.auxiliary` holds the mean divergence a token as
    `r_drop` (nats); what modules count, they count in both passes.
    """

    def __init__(self, objective: Judge, config: RDropConfig) -> None:
        self.objective, self.alpha = objective, config.alpha
        self.divisible = objective.divisible

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """One batch, as the objective."""
        both = batch.twice()
        with collecting(point.step) as auxiliary:
            output = self.objective.predict(model, both, point)
        loss = self.objective.judge(output, both, auxiliary, self.alpha)
        return replace(loss, total=loss.total / 2, cross_entropy=loss.cross_entropy / 2, tokens=batch.target_tokens)
