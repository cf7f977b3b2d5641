"""Normalisation layers: layer, RMS and batch normalisation."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.nn.dropout import Dropout
from dragoman.nn.kernels.choice import uses_kernels


class LayerNormConfig(Config):
    """(x − mean)/√(variance + ε) · gain + offset over each token's vector (Ba et al. 2016). The variance is biased."""

    kind: Literal["layer"] = "layer"
    gain: bool = Field(True, description="Use a learned scale for each of the d components.")
    offset: bool = Field(True, description="Use a learned bias for each of the d components.")
    epsilon: float = Field(1e-5, gt=0, description="ε, added for numerical stability.")

    def build(self, width: int) -> nn.Module:
        """Build the module for vectors of `width`."""
        return LayerNorm(self, width)


class LayerNorm(nn.LayerNorm):
    """torch's LayerNorm with independently optional gain and offset."""

    def __init__(self, config: LayerNormConfig, width: int) -> None:
        super().__init__(width, config.epsilon, elementwise_affine=config.gain, bias=config.offset)
        if config.offset and not config.gain:
            self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise states (…, d) → (…, d). mask: unused, because tokens are normalised independently."""
        if self.weight is not None and self.bias is not None and uses_kernels(states):
            from dragoman.nn.kernels.residual import normalised

            return normalised(states, None, self.weight, self.bias, epsilon=self.eps, rate=0.0)
        return super().forward(states)

    def after_sum(self, states: Tensor, result: Tensor, dropout: Dropout) -> Tensor:
        """Normalise the sum of states and the result of a sublayer after dropout, both (…, d)."""
        if self.weight is not None and self.bias is not None and uses_kernels(states):
            from dragoman.nn.kernels.residual import normalised

            rate, factor = dropout.split_rate
            return normalised(states, result, self.weight, self.bias, epsilon=self.eps, rate=rate, factor=factor)
        return super().forward(states + dropout(result))


class RMSNormConfig(Config):
    """x/√(mean of squares + ε) · gain (Zhang & Sennrich 2019)."""

    kind: Literal["rms"] = "rms"
    gain: bool = Field(True, description="Use a learned scale for each of the d components.")
    epsilon: float = Field(1e-5, gt=0, description="ε, added for numerical stability.")

    def build(self, width: int) -> nn.Module:
        """Build the module for vectors of `width`."""
        return RMSNorm(self, width)


class RMSNorm(nn.RMSNorm):
    """torch's RMSNorm with an optional gain."""

    def __init__(self, config: RMSNormConfig, width: int) -> None:
        super().__init__(width, config.epsilon, elementwise_affine=config.gain)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise states (…, d) → (…, d). mask: unused, because tokens are normalised independently."""
        return super().forward(states)


class BatchNormConfig(Config):
    """(x − μ)/√(σ² + ε) · gain + offset for each of the d components over all tokens except padding (Ioffe & Szegedy
    2015).

    Training uses the mean μ and variance σ² of the batch. With gradient accumulation, each part is normalised
    separately, so the result differs from that of the whole batch. Evaluation uses running averages, so the result of a
    sentence does not depend on the other sentences in its batch.

    YAML: `normalisation: {kind: batch}`
    """

    kind: Literal["batch"] = "batch"
    momentum: float = Field(
        0.1, gt=0, le=1, description="Weight of the newest batch in the running mean and variance (0 to 1)."
    )
    epsilon: float = Field(1e-5, gt=0, description="ε, added for numerical stability.")

    def build(self, width: int) -> nn.Module:
        """Build the module for vectors of `width`."""
        return BatchNorm(self, width)


class BatchNorm(nn.Module):
    """Batch normalisation over the tokens of a batch, without padding. Equivalent to torch's BatchNorm1d.

    The running mean and variance are buffers and are stored in checkpoints. A batch of a single token, which has zero
    variance, is normalised to the offset.
    """

    def __init__(self, config: BatchNormConfig, width: int) -> None:
        super().__init__()
        self.momentum, self.epsilon = config.momentum, config.epsilon
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.running_mean: Tensor
        self.running_var: Tensor
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise states (…, d) → (…, d). mask: (…) bool, False at padding; None if there is no padding."""
        inputs = states.to(torch.promote_types(states.dtype, torch.float32))
        if mask is not None:  # padding is excluded from the statistics, so its states could grow without bound
            inputs = inputs.masked_fill(~mask.unsqueeze(-1), 0.0)
        mean, variance = self.running_mean, self.running_var
        if self.training:
            mean, variance = self._batch_statistics(inputs, mask)
        result = (inputs - mean) * (variance + self.epsilon).rsqrt() * self.weight + self.bias
        return result.to(states.dtype)

    def _batch_statistics(self, states: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the mean and the biased variance of the batch, and update the running averages.

        As in torch, the running variance is updated with the unbiased variance.
        """
        values = states.flatten(0, -2)
        count: Tensor | float = float(len(values))
        if mask is not None:
            weight = mask.flatten()[:, None].to(states.dtype)
            values, count = values * weight, weight.sum().clamp_min(1)
        mean = values.sum(0) / count
        distance = states.flatten(0, -2) - mean
        squares = (distance.square() if mask is None else distance.square() * weight).sum(0)
        with torch.no_grad():
            unbiased = squares / (count - 1 if count > 1 else 1)
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), self.momentum)
        return mean, squares / count


NormConfig = Annotated[LayerNormConfig | RMSNormConfig | BatchNormConfig, Field(discriminator="kind")]
