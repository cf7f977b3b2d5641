"""A one-hot vector per position: an idea that fails, for comparison (deck 001)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding


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
