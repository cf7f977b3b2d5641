"""What the decoders of this folder give: hidden states, and the projection that makes logits of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.nn.embedding import Projection
from dragoman.nn.precision import at_least_single


@dataclass(frozen=True)
class Predictions:
    """Of N tokens: hidden (N, d) and weight (V, d), whose product, plus bias (V,) or nothing, is the logits.

    For a loss that never holds all of them (`training.objectives.cross_entropy`).
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True)
class ProjectedOutput:
    """An `Output`: hidden (R, T, d) is what the vocabulary projection reads; attention as promised there."""

    hidden: Tensor
    projection: Projection
    attention: Tensor | None = None

    def at(self, places: Tensor) -> Predictions:
        """What the predictions at `places`, as of `Output.logits`, are made of; differentiable."""
        return Predictions(_at(self.hidden, places), self.projection.weight, self.projection.bias)

    def logits(self, places: Tensor | None = None) -> Tensor:
        """As `Output` promises; differentiable."""
        return at_least_single(self.projection(self.hidden if places is None else _at(self.hidden, places)))

    def last_logits(self) -> Tensor:
        """As `Output` promises; differentiable."""
        return at_least_single(self.projection(self.hidden[:, -1]))

    @staticmethod
    def joined(outputs: Sequence["ProjectedOutput"]) -> "ProjectedOutput":
        """What one decoder gave in step after step, as if in a single one."""
        attention = [output.attention for output in outputs if output.attention is not None]
        return ProjectedOutput(
            torch.cat([output.hidden for output in outputs], 1),
            outputs[0].projection,
            torch.cat(attention, 1) if attention else None,
        )


def _at(values: Tensor, places: Tensor) -> Tensor:
    return values[places] if places.dtype == torch.bool else values.flatten(0, 1).index_select(0, places)
