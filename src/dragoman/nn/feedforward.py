"""The position-wise feed-forward network."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.dropout import Dropout

Activation = Literal["relu", "gelu"]


class FeedForward(nn.Module):
    """FFN(x) = activation(xW₁ + b₁)W₂ + b₂ (Vaswani et al. 2017, equation 2); dropout after the activation."""

    def __init__(self, width: int, inner: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, width)
        self.activation = functional.relu if activation == "relu" else functional.gelu
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor) -> Tensor:
        """(…, d) → (…, d)."""
        return self.outer(self.dropout(self.activation(self.inner(states))))  # type: ignore[no-any-return]
