"""Learned vectors for the clipped distance between key and query (Shaw et al. 2018)."""

from math import sqrt
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions


class RelativeConfig(PositionScheme):
    """Relative positions (Shaw et al. 2018): score += q·w^K_o/√d_k and value += w^V_o, o = clip(key − query, −δ, δ).

    The length of texts is not limited. The heads of a layer share their tables; layers do not.

    YAML: `positions: {kind: relative, distance: 16}`
    """

    kind: Literal["relative"] = "relative"
    inside_attention: ClassVar[bool] = True
    distance: int = Field(
        16,
        ge=1,
        description="Maximum distance δ in tokens, to which larger distances are clipped (deck 002: 5…16; paper: 16).",
    )
    keys: bool = Field(True, description="Add a position-dependent term to the scores (w^K).")
    values: bool = Field(True, description="Add a position-dependent term to the values (w^V).")

    def build_relative(self, heads: int, query_width: int, key_width: int, value_width: int) -> "Relative":
        """Build the tables of one layer. Raises ConfigError if both are disabled."""
        if not (self.keys or self.values):
            raise ConfigError("relative positions have no effect if keys and values are both false: set one to true")
        return Relative(self.distance, query_width if self.keys else None, value_width if self.values else None)


class Relative(RelativePositions):
    """The tables w^K (2δ+1, d_q) and w^V (2δ+1, d_v). Row δ corresponds to distance 0.

    Queries are multiplied by the 2δ+1 rows of w^K, so that no tensor (T, S, d_k) is created; Shaw et al. 2018, section
    3.3, use a different method. Apart from the attention weights (B, h, T, S), the largest tensor is (B, h, T, 2δ+1).
    """

    def __init__(self, distance: int, query_width: int | None, value_width: int | None) -> None:
        """Build the tables. query_width, value_width: None omits the table w^K or w^V."""
        super().__init__()
        self.distance = distance
        self.acts_on_scores, self.acts_on_values = query_width is not None, value_width is not None
        if query_width is not None:
            self.key_table = _table(distance, query_width)
        if value_width is not None:
            self.value_table = _table(distance, value_width)

    def score_bias(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Return the score terms (B, h, …, T, S) of queries (B, h, …, T, d_q)."""
        scores = torch.matmul(queries * (1 / sqrt(queries.size(-1))), self.key_table.t())
        rows = self._rows(offsets)
        return scores.gather(-1, rows.expand(*scores.shape[:-1], -1))

    def value_bias(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """Return the value terms (B, h, …, T, d_v) of weights (B, h, …, T, S).

        Weights are summed per distance, and then multiplied by the rows of w^V.
        """
        rows = self._rows(offsets).expand_as(weights)
        fractions = weights.new_zeros(*weights.shape[:-1], 2 * self.distance + 1).scatter_add(-1, rows, weights)
        return torch.matmul(fractions, self.value_table)

    def _rows(self, offsets: Tensor) -> Tensor:
        return offsets.clamp(-self.distance, self.distance) + self.distance


def _table(distance: int, width: int) -> nn.Parameter:
    table = nn.Parameter(torch.empty(2 * distance + 1, width))
    nn.init.xavier_uniform_(table)
    return table
