"""The position-wise feed-forward network."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.dropout import Dropout
from dragoman.nn.kernels.choice import uses_kernels
from dragoman.nn.kernels.linear import feedforward
from dragoman.nn.linear import Linear
from dragoman.nn.precision import matmul_dtype

Activation = Literal["relu", "gelu", "gelu_tanh", "swish", "swiglu", "geglu", "geglu_tanh"]


def gelu_tanh(states: Tensor) -> Tensor:
    """Return x/2 · (1 + tanh(√(2/π) · (x + 0.044715x³))), an approximation of GELU (Hendrycks & Gimpel 2016)."""
    return functional.gelu(states, approximate="tanh")


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": gelu_tanh,
    "swish": functional.silu,
    "swiglu": functional.silu,
    "geglu": functional.gelu,
    "geglu_tanh": gelu_tanh,
}
"""The activation functions by name."""

GATED = ("swiglu", "geglu", "geglu_tanh")
"""The activations of networks with a gate."""


class FeedForward(nn.Module):
    """FFN(x) = activation(xW₁ + b₁)W₂ + b₂ (Vaswani et al. 2017, equation 2), with dropout after the activation.

    gelu: z·Φ(z), exact; gelu_tanh: its approximation by tanh, as in GPT-2. swish: swish(z) = z·σ(z) (Ramachandran et
    al. 2017).
    swiglu: FFN(x) = (swish(xW₁ + b₁) ⊙ (xW₃ + b₃))W₂ + b₂ (Shazeer 2020, equation 6, with biases). geglu,
    geglu_tanh: the same with gelu and gelu_tanh.
    """

    timed = (("forward", "feed-forward"),)

    def __init__(
        self,
        width: int,
        inner: int,
        activation: Activation,
        dropout: float,
        *,
        bias: bool = True,
        float32_output: bool = False,
    ) -> None:
        """bias: whether the products have learned biases. float32_output: compute the second product in float32 instead
        of float16, whose range its result may exceed.
        """
        super().__init__()
        self.inner = Linear(width, inner, bias)
        self.outer = Linear(inner, width, bias)
        self.gate = Linear(width, inner, bias) if activation in GATED else None
        self.float32_output = float32_output
        self.activation_name, self.activation = activation, FUNCTIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply the network: (…, d) → (…, d). mask: unused, because tokens are processed independently."""
        is_relu = self.activation is functional.relu
        biases = self.inner.bias, self.outer.bias
        if is_relu and self.gate is None and None not in biases and uses_kernels(states):
            inner, outer = ((each.weight, each.bias) for each in (self.inner, self.outer))
            return feedforward(states, inner, outer, *self.dropout.split_rate)
        hidden = self.inner.with_relu(states) if is_relu else self.activation(self.inner(states))
        if self.gate is not None:
            hidden = hidden * self.gate(states)
        hidden = self.dropout(hidden)
        if self.float32_output and matmul_dtype(hidden) == torch.float16:
            bias = None if self.outer.bias is None else self.outer.bias.float()
            with torch.autocast(hidden.device.type, enabled=False):
                return functional.linear(hidden.float(), self.outer.weight.float(), bias)
        return self.outer(hidden)  # type: ignore[no-any-return]
