"""What every attention mechanism promises, whether a layer looks at its own sequence or at the source."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.nn.mask import Causal, Mask
from dragoman.nn.positions.scheme import PositionScheme

TensorTree = Any
"""Nested tuples, lists and dicts of tensors."""


@dataclass(frozen=True)
class AttentionSizes:
    """query: width of the states that ask; memory: of the states that are looked at; output: of the result, d.

    heads: h; dropout: rate on the weights.
    """

    query: int
    memory: int
    output: int
    heads: int
    dropout: float = 0.0


class Attention(nn.Module):
    """The interface of all attention mechanisms. Subclasses override the methods of the uses that they support.

    `self_attend` is self-attention of an encoder, `causal_self_attend` that of a decoder; `project_memory` and
    `cross_attend` together are attention over the source.

    output_width: width of the result. compilable: whether torch.compile speeds up its layer. weightless: for mechanisms
    without attention weights, what they do instead, as a phrase for messages. keep, wherever it is a parameter:
    (rows, T) bool, False where a query is padding.
    """

    output_width: int
    compilable: bool = True
    weightless: str | None = None
    timed = (
        *(("self_attend", "self-attention"), ("causal_self_attend", "self-attention")),
        *(("project_memory", "attention over the source"), ("cross_attend", "attention over the source")),
    )

    def self_attend(self, states: Tensor, padding: Mask) -> Tensor:
        """Every real token attends every other: states (B, S, d) → (B, S, output_width)."""
        raise NotImplementedError

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: Causal, keep: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """Each token attends itself and those before: states (R, T, d) of new tokens → (R, T, output_width), cache.

        cache: what the last call gave, None before the first token; tensors of R rows. What comes of padding before a
        row's first token (`causal.left_padding`) is finite and has no meaning.
        """
        raise NotImplementedError

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """What `cross_attend` reads of the source's states (B, S, d), computed once; tensors of B rows."""
        raise NotImplementedError

    def cross_attend(self, states: Tensor, memory: TensorTree, padding: Mask, keep: Tensor | None = None) -> Tensor:
        """Attend from states (B·K, T, d) over the source: (B·K, T, output_width).

        The K rows of a sentence share its memory: they are folded into the query axis, so it is never repeated.
        """
        raise NotImplementedError


def check_outside(positions: PositionScheme | None, kind: str) -> None:
    """Raises ConfigError for a scheme that acts inside attention, for a kind that never compares pairs of tokens."""
    if positions is not None and positions.inside_attention:
        raise ConfigError(
            f"positions of kind {positions.kind} act inside self-attention, which a decoder with attention of kind "  # type: ignore[attr-defined]
            f"{kind} does not have: set target_positions to none or to ones that are added, or choose another attention"
        )
