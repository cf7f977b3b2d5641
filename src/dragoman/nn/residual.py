"""The residual connection around a sublayer, and where its normalisation stands."""

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

    connected: False leaves the `x +` out, for ablation.
    """

    def __init__(self, width: int, order: NormOrder, norm: NormConfig, dropout: float, connected: bool = True) -> None:
        super().__init__()
        self.order, self.connected = order, connected
        self.norm = norm.build(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor], mask: Tensor | None = None) -> Tensor:
        """states (B, T, d) → (B, T, d); `sublayer` keeps the shape. mask: (B, T) bool, False at padding."""
        if self.order == "post":
            return self.norm(self._joined(states, self.dropout(sublayer(states))), mask)  # type: ignore[no-any-return]
        return self._joined(states, self.dropout(sublayer(self.norm(states, mask))))

    def _joined(self, states: Tensor, result: Tensor) -> Tensor:
        return states + result if self.connected else result


class _Unchanged(nn.Module):
    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        return states


def final_norm(width: int, order: NormOrder, norm: NormConfig) -> nn.Module:
    """What a stack ends with: a norm after pre-norm layers, whose sum is not normalised, else nothing."""
    return norm.build(width) if order == "pre" else _Unchanged()


def fitted(attention: Attention, width: int) -> Attention:
    """The same attention, if a residual connection fits around it. Raises ConfigError where it does not."""
    if attention.output_width != width:
        raise ConfigError(
            f"heads give {attention.output_width} numbers, but a layer of width {width} needs as many as that: set "
            "combine=project, or value_width and heads so that they fit"
        )
    return attention
