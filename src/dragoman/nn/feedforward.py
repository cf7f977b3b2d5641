"""The position-wise feed-forward network."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.dropout import Dropout

Activation = Literal["relu", "gelu", "gelu_tanh", "swish", "swiglu"]


def gelu_tanh(states: Tensor) -> Tensor:
    """Return x/2 · (1 + tanh(√(2/π) · (x + 0.044715x³))), an approximation of GELU (Hendrycks & Gimpel 2016)."""
    return functional.gelu(states, approximate="tanh")


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": gelu_tanh,
    "swish": functional.silu,
    "swiglu": functional.silu,
}
"""The activation functions by name."""


class FeedForward(nn.Module):
    """FFN(x) = activation(xW₁ + b₁)W₂ + b₂ (Vaswani et al. 2017, equation 2), with dropout after the activation.

    gelu: z·Φ(z), exact; gelu_tanh: its approximation by tanh, as in GPT-2. swish: swish(z) = z·σ(z) (Ramachandran et
    al. 2017).
    swiglu: FFN(x) = (swish(xW₁ + b₁) ⊙ (xW₃ + b₃))W₂ + b₂ (Shazeer 2020, equation 6, with biases).
    """

    timed = (("forward", "feed-forward"),)

    def __init__(self, width: int, inner: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, width)
        self.gate = nn.Linear(width, inner) if activation == "swiglu" else None
        self.activation = FUNCTIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply the network: (…, d) → (…, d). mask: unused, because tokens are processed independently."""
        hidden = self.activation(self.inner(states))
        if self.gate is not None:
            hidden = hidden * self.gate(states)
        return self.outer(self.dropout(hidden))  # type: ignore[no-any-return]
