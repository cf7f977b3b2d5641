"""The residual connection around a sublayer, with normalisation before or after it."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import Attention
from dragoman.nn.dropout import Dropout
from dragoman.nn.normalisation import NormConfig

NormOrder = Literal["post", "pre"]


class Residual(nn.Module):
    """post-norm LN(x + drop(f(x))) (Vaswani et al. 2017) or pre-norm x + drop(f(LN(x))) (Xiong et al. 2020).

    connected: False omits the `x +`, for ablations.
    """

    def __init__(self, width: int, order: NormOrder, norm: NormConfig, dropout: float, connected: bool = True) -> None:
        super().__init__()
        self.order, self.connected = order, connected
        self.norm = norm.build(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor], mask: Tensor | None = None) -> Tensor:
        """states (B, T, d) → (B, T, d); `sublayer` preserves the shape. mask: (B, T) bool, False at padding."""
        if self.order == "post":
            return self.norm(self._joined(states, self.dropout(sublayer(states))), mask)  # type: ignore[no-any-return]
        return self._joined(states, self.dropout(sublayer(self.norm(states, mask))))

    def _joined(self, states: Tensor, result: Tensor) -> Tensor:
        return states + result if self.connected else result


class _Unchanged(nn.Module):
    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        return states


def final_norm(width: int, order: NormOrder, norm: NormConfig) -> nn.Module:
    """Return the last module of a stack: a norm after pre-norm layers (their sum is not normalised), or an identity."""
    return norm.build(width) if order == "pre" else _Unchanged()


def fitted(attention: Attention, width: int) -> Attention:
    """Return `attention` if its output width fits a residual connection. Raises ConfigError if it does not."""
    if attention.output_width != width:
        raise ConfigError(
            f"the heads' output width is {attention.output_width}, but the layer's width is {width}: set "
            "combine=project, or change value_width or heads"
        )
    return attention
