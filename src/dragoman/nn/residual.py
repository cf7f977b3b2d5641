"""The residual connection around a sublayer, with normalisation before or after it."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import Attention
from dragoman.nn.dropout import Dropout
from dragoman.nn.kernels.choice import uses_kernels
from dragoman.nn.normalisation import LayerNorm, NormConfig

NormOrder = Literal["post", "pre"]


class Residual(nn.Module):
    """Post-norm LN(x + drop(f(x))) (Vaswani et al. 2017) or pre-norm x + drop(f(LN(x))) (Xiong et al. 2020).

    connected: whether x is added; False removes the residual connection, for ablations.
    """

    def __init__(self, width: int, order: NormOrder, norm: NormConfig, dropout: float, connected: bool = True) -> None:
        super().__init__()
        self.order, self.connected = order, connected
        self.norm = norm.build(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor], mask: Tensor | None = None) -> Tensor:
        """Apply `sublayer`, which preserves shapes, to states (B, T, d) → (B, T, d).

        mask: (B, T) bool, False at padding.
        """
        if self.order == "post":
            if self.connected and isinstance(self.norm, LayerNorm):
                return self.norm.after_sum(states, sublayer(states), self.dropout)
            return self.norm(self._add(states, sublayer(states)), mask)  # type: ignore[no-any-return]
        return self._add(states, sublayer(self.norm(states, mask)))

    def _add(self, states: Tensor, result: Tensor) -> Tensor:
        """Return the sum of states and a sublayer's result after dropout."""
        if self.connected and uses_kernels(states):
            from dragoman.nn.kernels.residual import added

            return added(states, result, *self.dropout.split_rate)
        result = self.dropout(result)
        return states + result if self.connected else result


class _Unchanged(nn.Module):
    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        return states


def final_norm(width: int, order: NormOrder, norm: NormConfig) -> nn.Module:
    """Return the final module of a stack.

    It is a norm after pre-norm layers, whose sum is not normalised, and an identity after post-norm layers.
    """
    return norm.build(width) if order == "pre" else _Unchanged()


def require_output_width(attention: Attention, width: int) -> Attention:
    """Return `attention`. Raises ConfigError if its output width is not `width`, as residual connections require."""
    if attention.output_width != width:
        raise ConfigError(
            f"the heads' output width is {attention.output_width}, but the layer's width is {width}: set "
            "combine=project, or change value_width or heads"
        )
    return attention
