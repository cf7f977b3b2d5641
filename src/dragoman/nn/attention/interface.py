"""The interface of attention mechanisms, for self-attention and for attention over the source."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.scheme import PositionScheme

TensorTree = Any
"""Nested tuples, lists and dicts of tensors."""


@dataclass(frozen=True)
class AttentionSizes:
    """query: width of the query states. memory: width of the key–value states. output: width of the result, d.

    heads: number of heads h. dropout: dropout rate on the attention weights.
    """

    query: int
    memory: int
    output: int
    heads: int
    dropout: float = 0.0


class Attention(nn.Module):
    """The interface of all attention mechanisms. Subclasses override the methods that they support.

    `self_attend` is self-attention of an encoder, `causal_self_attend` that of a decoder; `project_memory` and
    `cross_attend` together are attention over the source.

    output_width: width of the result. compilable: whether torch.compile speeds up its layer. weightless: for mechanisms
    without attention weights, a phrase for messages that describes the mechanism. query_mask, in all methods: (rows, T)
    bool, False where a query is padding.
    """

    output_width: int
    compilable: bool = True
    weightless: str | None = None
    timed = (
        *(("self_attend", "self-attention"), ("causal_self_attend", "self-attention")),
        *(("project_memory", "attention over the source"), ("cross_attend", "attention over the source")),
    )

    def self_attend(self, states: Tensor, padding: Mask) -> Tensor:
        """Every token attends all tokens that `padding` allows: states (B, S, d) → (B, S, output_width)."""
        raise NotImplementedError

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: CausalSpan, query_mask: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """Each new token attends itself and all earlier ones: states (R, T, d) → (R, T, output_width), new cache.

        cache: the cache returned by the previous call, a tree of tensors with R rows; None before the first token.
        Outputs at padding before a row's first token (`causal.left_padding`) are finite and meaningless.
        """
        raise NotImplementedError

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """Precompute, from the source states (B, S, d), the inputs of `cross_attend`: a tree of tensors with B rows."""
        raise NotImplementedError

    def cross_attend(
        self, states: Tensor, memory: TensorTree, padding: Mask, query_mask: Tensor | None = None
    ) -> Tensor:
        """Attend from states (B·K, T, d) over the source: (B·K, T, output_width).

        memory: the result of `project_memory`. The K rows of a sentence share its memory: they are folded into the
        query axis, so the memory is never repeated.
        """
        raise NotImplementedError


def check_outside(positions: PositionScheme | None, kind: str) -> None:
    """Check the position scheme of an attention `kind` that never compares pairs of tokens.

    Raises ConfigError for a scheme that acts inside attention.
    """
    if positions is not None and positions.inside_attention:
        raise ConfigError(
            f"positions of kind {positions.kind} act inside self-attention, but a decoder with attention of kind "  # type: ignore[attr-defined]
            f"{kind} has no self-attention: set target_positions to none or to a scheme that is added, or choose "
            "another attention"
        )
