"""Attention with linear biases (Press et al. 2022)."""

from math import floor, log2
from typing import ClassVar, Literal

import torch
from torch import Tensor

from dragoman.nn.positions.scheme import PositionScheme, RelativePositions


class AlibiConfig(PositionScheme):
    """Attention with linear biases: score −= m_i·|key − query|, with fixed slope m_i = 2^(−8i/h) for head i (Press et
    al. 2022).

    There are no learned parameters. In an encoder, the bias is symmetric, so it does not distinguish left from right.

    YAML: `positions: {kind: alibi}`
    """

    kind: Literal["alibi"] = "alibi"
    inside_attention: ClassVar[bool] = True

    def build_relative(self, heads: int, query_width: int, key_width: int, value_width: int) -> "Alibi":
        """Build the biases of `heads` heads."""
        return Alibi(heads)


class Alibi(RelativePositions):
    """The biases −m·|key − query| of all heads."""

    acts_on_scores = True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes: Tensor
        self.register_buffer("slopes", torch.tensor(slopes(heads)), persistent=False)

    def score_bias(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Return the biases (1, h, …, T, S), which all sentences share."""
        blocks = [1] * (queries.dim() - 4)
        return -self.slopes.view(1, -1, *blocks, 1, 1) * offsets.abs()


def slopes(heads: int) -> list[float]:
    """Return the slopes 2^(−8i/h) for i = 1 … h.

    If h is not a power of two, the result follows the code of the paper: the slopes for the largest power of two p
    below h, followed by every other slope for 2p heads, starting with the first.
    """
    power = 2 ** floor(log2(heads))
    regular = [2.0 ** (-8 * i / power) for i in range(1, power + 1)]
    return regular + [2.0 ** (-4 * i / power) for i in range(1, 2 * (heads - power), 2)]
