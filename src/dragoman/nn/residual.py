"""The residual connection around a sublayer, and where its normalisation stands."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from dragoman.nn.dropout import Dropout

NormOrder = Literal["post", "pre"]


class Residual(nn.Module):
    """post-norm LN(x + drop(f(x))) (Vaswani et al. 2017) or pre-norm x + drop(f(LN(x))) (Xiong et al. 2020)."""

    def __init__(self, width: int, order: NormOrder, dropout: float) -> None:
        super().__init__()
        self.order = order
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """states (B, T, d) → (B, T, d); `sublayer` keeps the shape."""
        if self.order == "post":
            return self.norm(states + self.dropout(sublayer(states)))  # type: ignore[no-any-return]
        return states + self.dropout(sublayer(self.norm(states)))  # type: ignore[no-any-return]


def final_norm(width: int, order: NormOrder) -> nn.Module:
    """What a stack ends with: a LayerNorm after pre-norm layers, whose sum is not normalised, else nothing."""
    return nn.LayerNorm(width) if order == "pre" else nn.Identity()
