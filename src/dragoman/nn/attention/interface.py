"""What every attention mechanism promises, whether a layer looks at its own sequence or at the source."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.nn.mask import Causal, Mask
from dragoman.nn.positions.scheme import PositionScheme

Tree = Any
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
    """A mechanism overrides `encode` and `extend` (self-attention), `memorise` and `look` (attention over the source).

    One that only looks back, for decoders, overrides `extend` alone. output_width: width of what comes out. compilable:
    whether torch.compile gains from its layer. weightless: what it does in place of weighing tokens, where it has no
    weights that could be recorded. keep, wherever it is given: (rows, T) bool, False where a query is padding.
    """

    output_width: int
    compilable: bool = True
    weightless: str | None = None
    timed = (
        *(("encode", "self-attention"), ("extend", "self-attention")),
        *(("memorise", "attention over the source"), ("look", "attention over the source")),
    )

    def encode(self, states: Tensor, padding: Mask) -> Tensor:
        """Every real token attends every other: states (B, S, d) → (B, S, output_width)."""
        raise NotImplementedError

    def extend(
        self, states: Tensor, cache: Tree | None, causal: Causal, keep: Tensor | None = None
    ) -> tuple[Tensor, Tree]:
        """Each token attends itself and those before: states (R, T, d) of new tokens → (R, T, output_width), cache.

        cache: what the last call gave, None before the first token; tensors of R rows. What comes of padding before a
        row's first token (`causal.skip`) is finite and has no meaning.
        """
        raise NotImplementedError

    def memorise(self, states: Tensor, padding: Mask) -> Tree:
        """What `look` reads of the source's states (B, S, d), computed once; tensors of B rows."""
        raise NotImplementedError

    def look(self, states: Tensor, memory: Tree, padding: Mask, keep: Tensor | None = None) -> Tensor:
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
