"""A one-hot vector for each position: an idea that fails, for comparison."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding


class OneHotConfig(AbsoluteScheme):
    """p_pos has a 1 at component pos and 0 elsewhere (deck 001, idea 2), so d components are d positions and no more.

    A vector that is added has the model's width, so `limit` ≤ d; one that is concatenated has `width` components.
    YAML: `positions: {kind: one_hot}`.
    """

    kind: Literal["one_hot"] = "one_hot"
    limit: int | None = Field(
        None,
        ge=1,
        description="the longest text in tokens, its end counted; null: as many as the vector has components",
    )

    def encoding(self, width: int) -> "OneHot":
        """The vectors. Raises ConfigError for more positions than there are components."""
        if self.limit is not None and self.limit > width:
            raise ConfigError(
                f"one_hot positions of {width} components tell {width} positions apart, not {self.limit}: lower their "
                f"limit, or set join=concatenate and width={self.limit}"
            )
        return OneHot(width, self.limit or width)


class OneHot(Encoding):
    """Rows of the unit matrix."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__(width)
        self.limit = limit
        self.anchor: Tensor
        self.register_buffer("anchor", torch.empty(0), persistent=False)  # knows the device and the kind of number

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """(length, width)."""
        places = torch.arange(start, start + length, device=self.anchor.device)
        return functional.one_hot(places, self.width).to(self.anchor.dtype)
