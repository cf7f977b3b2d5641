"""Normalisation of layer inputs and outputs, by kind."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.config import Config


class LayerNormConfig(Config):
    """(x − mean)/√(variance + ε) · gain + offset over each token's vector (Ba et al. 2016); the biased variance."""

    kind: Literal["layer"] = "layer"
    gain: bool = Field(True, description="a learned factor for each of the d numbers")
    offset: bool = Field(True, description="a learned summand for each of the d numbers")
    epsilon: float = Field(1e-5, gt=0, description="ε, what keeps the root from zero")

    def build(self, width: int) -> nn.Module:
        """For vectors of `width`."""
        return LayerNorm(self, width)


class LayerNorm(nn.LayerNorm):
    """torch's, with gain and offset apart."""

    def __init__(self, config: LayerNormConfig, width: int) -> None:
        super().__init__(width, config.epsilon, elementwise_affine=config.gain, bias=config.offset)
        if config.offset and not config.gain:
            self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, states: Tensor, keep: Tensor | None = None) -> Tensor:
        """(…, d) → (…, d). keep: not needed, every token stands for itself."""
        return super().forward(states)


class RMSNormConfig(Config):
    """x/√(mean of squares + ε) · gain (Zhang & Sennrich 2019)."""

    kind: Literal["rms"] = "rms"
    gain: bool = Field(True, description="a learned factor for each of the d numbers")
    epsilon: float = Field(1e-5, gt=0, description="ε, what keeps the root from zero")

    def build(self, width: int) -> nn.Module:
        """For vectors of `width`."""
        return RMSNorm(self, width)


class RMSNorm(nn.RMSNorm):
    """torch's."""

    def __init__(self, config: RMSNormConfig, width: int) -> None:
        super().__init__(width, config.epsilon, elementwise_affine=config.gain)

    def forward(self, states: Tensor, keep: Tensor | None = None) -> Tensor:
        """(…, d) → (…, d). keep: not needed, every token stands for itself."""
        return super().forward(states)


NormConfig = Annotated[LayerNormConfig | RMSNormConfig, Field(discriminator="kind")]
