"""Deck 001's three naive schemes, for comparison: the index, the fraction of the length, and a one-hot vector."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding


class _NumberScheme(AbsoluteScheme):
    """The same number in every component of the position vector.

    Layer normalisation removes a constant that is added to every component, so a pre-norm model cannot see it. These
    schemes are therefore concatenated by default.
    """

    join: Literal["add", "concatenate"] = Field(
        "concatenate",
        description="concatenate: to the token's vector, followed by a learned projection back to d. add: to every "
        "component, which layer normalisation cancels.",
    )


class IndexConfig(_NumberScheme):
    """p_pos = (pos, …, pos), counted from 0 (deck 001, idea 1). The values are unbounded.

    YAML: `positions: {kind: index}`.
    """

    kind: Literal["index"] = "index"

    def encoding(self, width: int) -> "Index":
        """Build the module that computes the numbers."""
        return Index(width)


class Index(Encoding):
    """0, 1, 2, …"""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.anchor: Tensor
        self.register_buffer("anchor", torch.zeros(1, 1), persistent=False)  # gives the device

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """(length, width)."""
        places = torch.arange(start, start + length, dtype=torch.float32, device=self.anchor.device)
        return places[:, None].expand(-1, self.width)


class FractionConfig(_NumberScheme):
    """p_pos = (f, …, f) with f = pos/len, pos counted from 1 (deck 001, idea 3). Distances depend on the length.

    For encoders only, because a decoder does not know the length of its output. YAML: `positions: {kind: fraction}`.
    """

    kind: Literal["fraction"] = "fraction"
    needs_length: ClassVar[bool] = True

    def encoding(self, width: int) -> "Fraction":
        """Build the module that computes the fractions."""
        return Fraction(width)


class Fraction(Index):
    """1/n, 2/n, …, 1 for a text of n tokens."""

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """(B, length, width); rows differ by their length. mask None: all rows have `length` tokens."""
        if mask is None:
            mask = torch.ones(1, length, dtype=torch.bool, device=self.anchor.device)
        places = torch.arange(start + 1, start + length + 1, dtype=torch.float32, device=mask.device)
        fractions = places / mask.sum(1, keepdim=True).clamp_min(1)
        return fractions.unsqueeze(2).expand(-1, -1, self.width)


class OneHotConfig(AbsoluteScheme):
    """p_pos has a 1 at component pos and 0 elsewhere (deck 001, idea 2), so that d components distinguish at most d
    positions.

    A vector that is added has the model's width, so `limit` ≤ d; a concatenated one has `width` components.
    YAML: `positions: {kind: one_hot}`.
    """

    kind: Literal["one_hot"] = "one_hot"
    limit: int | None = Field(
        None,
        ge=1,
        description="Maximum input length in tokens, end of sentence included; null: the number of components.",
    )

    def encoding(self, width: int) -> "OneHot":
        """Build the module that computes the vectors. Raises ConfigError for more positions than components."""
        if self.limit is not None and self.limit > width:
            raise ConfigError(
                f"one_hot positions with {width} components distinguish {width} positions, not {self.limit}: lower "
                f"their limit, or set join=concatenate and width={self.limit}"
            )
        return OneHot(width, self.limit or width)


class OneHot(Encoding):
    """Rows of the identity matrix."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__(width)
        self.limit = limit
        self.anchor: Tensor
        self.register_buffer("anchor", torch.empty(0), persistent=False)  # gives the device and the number type

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """(length, width)."""
        places = torch.arange(start, start + length, device=self.anchor.device)
        return functional.one_hot(places, self.width).to(self.anchor.dtype)
