"""Attention with linear biases (Press et al. 2022)."""

from math import floor, log2
from typing import ClassVar, Literal

import torch
from torch import Tensor

from dragoman.nn.positions.scheme import PositionScheme, RelativePositions


class AlibiConfig(PositionScheme):
    """Press et al. 2022: score −= m_i·|key − query| with the slope m_i = 2^(−8i/h) of head i; nothing is learned.

    In an encoder the bias is symmetric, so that left and right differ only by what the text itself contains, such as
    its end symbol. YAML: `positions: {kind: alibi}`.
    """

    kind: Literal["alibi"] = "alibi"
    inside_attention: ClassVar[bool] = True

    def build_relative(self, heads: int, query_width: int, key_width: int, value_width: int) -> "Alibi":
        """Build the biases of `heads` heads."""
        return Alibi(heads)


class Alibi(RelativePositions):
    """−m·|offset|."""

    acts_on_scores = True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes: Tensor
        self.register_buffer("slopes", torch.tensor(slopes(heads)), persistent=False)

    def score_bias(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Return (1, h, …, T, S), which all sentences share."""
        blocks = [1] * (queries.dim() - 4)
        return -self.slopes.view(1, -1, *blocks, 1, 1) * offsets.abs()


def slopes(heads: int) -> list[float]:
    """Return 2^(−8i/h) for i = 1 … h.

    If h is not a power of two, follow the paper's code: the slopes of the largest power of two p below h, then every
    other slope of 2p, starting with the first.
    """
    power = 2 ** floor(log2(heads))
    found = [2.0 ** (-8 * place / power) for place in range(1, power + 1)]
    return found + [2.0 ** (-4 * place / power) for place in range(1, 2 * (heads - power), 2)]
