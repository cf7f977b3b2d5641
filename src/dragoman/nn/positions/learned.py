"""One learned vector per position."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding


class LearnedConfig(AbsoluteScheme):
    """Learned position vectors, stored in a table (Gehring et al. 2017, section 3.1).

    Inputs longer than the table are rejected. YAML: `positions: {kind: learned, limit: 512}`
    """

    kind: Literal["learned"] = "learned"
    limit: int = Field(
        512,
        ge=1,
        description="Number of rows of the table: maximum input length in tokens, including the end of sentence.",
    )

    def encoding(self, width: int) -> "Learned":
        """Build the table."""
        return Learned(width, self.limit)


class Learned(Encoding):
    """A table (limit, width), initialised from N(0, 1/width) like the token vectors before scaling."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__(width)
        self.limit = limit
        self.table = nn.Parameter(torch.empty(limit, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """Return rows of the table: (length, width)."""
        return self.table[start : start + length]
