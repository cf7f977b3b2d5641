"""Guided alignment: cross-entropy, and supervision of a cross-attention head by word alignments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.models.attention_weights import AlignedStep, select_cross_attention
from dragoman.nn.attention.recording import recording
from dragoman.nn.auxiliary import collecting
from dragoman.statistical.alignment.word_aligner import AlignerConfig
from dragoman.training.objectives.cross_entropy import CrossEntropy, LabelSmoothingConfig
from dragoman.training.objectives.objective import FIRST, Loss, LossContext, TrainingPoint

_SMALLEST_WEIGHT = 1e-6
"""Added to attention weights before the logarithm, as in Marian."""


class GuidedAlignmentConfig(LabelSmoothingConfig):
    """Guided alignment (Garg et al. 2019, "Jointly learning to align and translate with Transformer models").

    Cross-entropy + λ · L, where L is the cross-entropy of the attention weights of one head and the links of a word
    aligner: −(1/n) Σ log α(t, s) for a target token t with n links, and 0 for a target token without links. By default,
    α(t, s) are the weights of the step that reads t (Chen et al. 2020, "Accurate word alignment induction from neural
    machine translation", section 3). The aligner is trained on the training pairs before the run. YAML: `train:
    {objective: {kind: guided_alignment}}`.
    """

    kind: Literal["guided_alignment"] = "guided_alignment"
    weight: float = Field(0.05, gt=0, description="λ, weight of the alignment loss (paper: 0.05).")
    layer: int | None = Field(
        None, ge=1, description="Decoder layer of the head, from 1; null: the penultimate layer, or the only layer."
    )
    head: int = Field(1, ge=1, description="Cross-attention head that is supervised, from 1.")
    step: AlignedStep = Field(
        "input",
        description="Decoder step whose weights align a target token. input: the step that reads the token, so that "
        "the head knows it (Chen et al. 2020); output: the step that predicts it (Garg et al. 2019).",
    )
    aligner: AlignerConfig = Field(AlignerConfig(), description="Word aligner whose links supervise the head.")

    @property
    def records_attention(self) -> bool:
        """See `ObjectiveConfig.records_attention`."""
        return True

    def build(self, context: LossContext) -> "GuidedAlignment":
        """Build the loss. Trains the aligner; raises its errors, and ConfigError if the task has no links."""
        if context.links is None:
            raise ConfigError("guided alignment needs sentence pairs of text: choose another train.objective")
        return GuidedAlignment(self.cross_entropy(context), context.links(self.aligner), self)


@dataclass(frozen=True)
class TokenLinks:
    """The links between the tokens of N sentence pairs.

    starts: (N + 1), where the links of each pair start. source, target: the token positions of all links.
    """

    starts: NDArray[np.int64]
    source: NDArray[np.int32]
    target: NDArray[np.int32]

    def of_rows(self, rows: Sequence[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return all links of a batch: the row in the batch, the target and the source position (int64), and 1 / n.

        rows: indices of the pairs. n is the number of links of the target token.
        """
        parts = [slice(self.starts[row], self.starts[row + 1]) for row in rows]
        batch_row = np.repeat(np.arange(len(rows)), [part.stop - part.start for part in parts])
        source, target = (
            np.concatenate([side[part] for part in parts]).astype(np.int64) for side in (self.source, self.target)
        )
        keys = batch_row * (int(target.max(initial=0)) + 1) + target
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        shares = (1 / counts)[inverse.reshape(-1)].astype(np.float32)
        row, of_target, of_source, share = (
            torch.from_numpy(np.ascontiguousarray(each)) for each in (batch_row, target, source, shares)
        )
        return row, of_target, of_source, share


class GuidedAlignment:
    """Cross-entropy plus the alignment loss, summed over target tokens.

    `Loss.auxiliary` contains the mean alignment loss per target token as `guided_alignment` (nats).
    """

    def __init__(self, objective: CrossEntropy, links: TokenLinks, config: GuidedAlignmentConfig) -> None:
        self.objective, self.links, self.config = objective, links, config
        self.divisible = objective.divisible

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of one batch. Raises ConfigError if the model has no such layer or head."""
        attention = select_cross_attention(model, self.config.layer)
        with collecting(point.step) as auxiliary, recording(differentiable=True) as recorded:
            output = self.objective.predict(model, batch, point)
        weights = torch.cat(recorded[attention], 2)  # (B, heads, T, S)
        if self.config.head > weights.size(1):
            raise ConfigError(
                f"train.objective.head={self.config.head}: this layer has heads 1 to {weights.size(1)}, so choose one "
                "of them"
            )
        baseline = self.objective.baseline(model, batch, point, auxiliary)
        loss = self.objective.loss(output, batch, auxiliary, None, baseline)
        alignment = self.alignment_loss(weights[:, self.config.head - 1], batch.rows)
        return replace(
            loss,
            total=loss.total + self.config.weight * alignment,
            auxiliary={**loss.auxiliary, "guided_alignment": float(alignment.detach()) / batch.target_tokens},
        )

    def alignment_loss(self, weights: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the alignment loss of a batch, summed over target tokens. weights: (B, T + 1, S)."""
        row, target, source, share = (each.to(weights.device) for each in self.links.of_rows(rows))
        if self.config.step == "input":
            target = target + 1
        return -(share * (weights[row, target, source].float() + _SMALLEST_WEIGHT).log()).sum()
