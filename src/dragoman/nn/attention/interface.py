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
    """The sizes of an attention mechanism.

    query: width of the query states. memory: width of the key–value states. output: width d of the result. heads:
    number of heads h. dropout: dropout rate on the attention weights.
    """

    query: int
    memory: int
    output: int
    heads: int
    dropout: float = 0.0


class Attention(nn.Module):
    """The interface of all attention mechanisms. Subclasses override the methods that they support.

    `self_attend` is self-attention in an encoder, and `causal_self_attend` self-attention in a decoder.
    `project_memory` and `cross_attend` implement attention over the source.

    output_width: width of the result. compilable: whether torch.compile speeds up layers with this attention.
    weightless: for mechanisms without attention weights, a phrase that describes the mechanism in messages.
    query_mask, in all methods: (rows, T) bool, False where a query is padding.
    """

    output_width: int
    compilable: bool = True
    weightless: str | None = None
    timed = (
        *(("self_attend", "self-attention"), ("causal_self_attend", "self-attention")),
        *(("project_memory", "attention over the source"), ("cross_attend", "attention over the source")),
    )

    def self_attend(self, states: Tensor, padding: Mask) -> Tensor:
        """Attend from every token to all tokens that `padding` allows: states (B, S, d) → (B, S, output_width)."""
        raise NotImplementedError

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: CausalSpan, query_mask: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """Attend from each new token to itself and all earlier tokens.

        states: (R, T, d). cache: the cache returned by the previous call, a tree of tensors with R rows; None before
        the first token. Returns the result (R, T, output_width) and the new cache. Outputs at padding before the first
        token of a row (`causal.left_padding`) are finite but undefined.
        """
        raise NotImplementedError

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """Return the `memory` argument of `cross_attend` for source states (B, S, d): a tree of tensors with B rows."""
        raise NotImplementedError

    def cross_attend(
        self, states: Tensor, memory: TensorTree, padding: Mask, query_mask: Tensor | None = None
    ) -> Tensor:
        """Attend from states (B·K, T, d) to the source: (B·K, T, output_width).

        memory: the result of `project_memory`. The K rows of a sentence share its memory. They are folded into the
        query axis, so that the memory is not repeated.
        """
        raise NotImplementedError


def reject_positions_inside_attention(positions: PositionScheme | None, kind: str) -> None:
    """Raise ConfigError for a position scheme that acts inside attention.

    kind: the kind of an attention mechanism that does not compare pairs of tokens.
    """
    if positions is not None and positions.inside_attention:
        raise ConfigError(
            f"positions of kind {positions.kind} act inside self-attention, but a decoder with attention of kind "  # type: ignore[attr-defined]
            f"{kind} has no self-attention: set target_positions to none or to a scheme that is added to the "
            "embeddings, or choose another kind of attention"
        )
