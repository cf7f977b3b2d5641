"""The three naive schemes of deck 001, for comparison: the index, the fraction of the length, and a one-hot vector."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding


class _NumberScheme(AbsoluteScheme):
    """The base class of schemes whose position vectors have equal components.

    Layer normalisation removes a constant that is added to every component, so adding such a vector has no effect in a
    pre-norm model. These vectors are therefore concatenated by default.
    """

    join: Literal["add", "concatenate"] = Field(
        "concatenate",
        description="concatenate: position vectors are concatenated with the token vectors, and a learned projection "
        "maps the result back to width d. add: the number is added to every component, which layer normalisation "
        "cancels.",
    )


class IndexConfig(_NumberScheme):
    """p_pos = (pos, …, pos), counted from 0 (deck 001, idea 1). The values are unbounded.

    YAML: `positions: {kind: index}`
    """

    kind: Literal["index"] = "index"

    def encoding(self, width: int) -> "Index":
        """Build the module that computes the numbers."""
        return Index(width)


class Index(Encoding):
    """The positions 0, 1, 2, …, repeated in every component."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.anchor: Tensor
        self.register_buffer("anchor", torch.zeros(1, 1), persistent=False)  # determines the device

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """Return the vectors (length, width)."""
        positions = torch.arange(start, start + length, dtype=torch.float32, device=self.anchor.device)
        return positions[:, None].expand(-1, self.width)


class FractionConfig(_NumberScheme):
    """p_pos = (f, …, f) with f = pos/len, counted from 1 (deck 001, idea 3).

    The distance between neighbours depends on the length. For encoders only, because the output length of a decoder is
    unknown. YAML: `positions: {kind: fraction}`
    """

    kind: Literal["fraction"] = "fraction"
    needs_length: ClassVar[bool] = True

    def encoding(self, width: int) -> "Fraction":
        """Build the module that computes the fractions."""
        return Fraction(width)


class Fraction(Index):
    """The fractions 1/n, 2/n, …, 1 for a text of n tokens, repeated in every component."""

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """Return the vectors (B, length, width). mask: (B, length) bool; None if all rows have `length` tokens."""
        if mask is None:
            mask = torch.ones(1, length, dtype=torch.bool, device=self.anchor.device)
        positions = torch.arange(start + 1, start + length + 1, dtype=torch.float32, device=mask.device)
        fractions = positions / mask.sum(1, keepdim=True).clamp_min(1)
        return fractions.unsqueeze(2).expand(-1, -1, self.width)


class OneHotConfig(AbsoluteScheme):
    """One-hot vectors: component pos of p_pos is 1 and all others are 0 (deck 001, idea 2).

    The number of components limits the number of positions. Added vectors have d components, so `limit` ≤ d.
    Concatenated vectors have `width` components. YAML: `positions: {kind: one_hot}`
    """

    kind: Literal["one_hot"] = "one_hot"
    limit: int | None = Field(
        None,
        ge=1,
        description="Maximum input length in tokens, including the end of sentence; null: the number of components.",
    )

    def encoding(self, width: int) -> "OneHot":
        """Build the module that computes the vectors. Raises ConfigError if `limit` exceeds `width`."""
        if self.limit is not None and self.limit > width:
            raise ConfigError(
                f"one_hot positions with {width} components support at most {width} positions, not {self.limit}: lower "
                f"limit, or set join=concatenate and width={self.limit}"
            )
        return OneHot(width, self.limit or width)


class OneHot(Encoding):
    """Rows of the identity matrix."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__(width)
        self.limit = limit
        self.anchor: Tensor
        self.register_buffer("anchor", torch.empty(0), persistent=False)  # determines the device and the dtype

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """Return the vectors (length, width)."""
        positions = torch.arange(start, start + length, device=self.anchor.device)
        return functional.one_hot(positions, self.width).to(self.anchor.dtype)
