"""Path lengths and receptive fields of different kinds of layers (Vaswani et al. 2017, table 1; deck 001).

The values are exact. Tests compare them with the gradients of models.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.models.interface import Encoder


@dataclass(frozen=True)
class Mechanism:
    """A kind of layer.

    reach: function that returns the number of tokens on each side to which layer l = 0, 1, … is connected, or None for
    all tokens. stepwise: whether a layer passes information from token to token, so that the path length is the
    distance.
    """

    name: str
    reach: Callable[[int], int | None]
    stepwise: bool = False

    def receptive_field(self, layers: int, length: int) -> int:
        """Return the number of tokens that influence the middle position of a text after `layers` layers."""
        middle = length // 2
        left, right = (self._one_sided_field(layers, side) for side in (middle, length - 1 - middle))
        return left + 1 + right

    def path_length(self, distance: int) -> int:
        """Return the number of operations on the path between two tokens at a distance of `distance` > 0 positions."""
        if self.stepwise:
            return distance
        layers = 1
        while self._one_sided_field(layers, distance) < distance:
            layers += 1
        return layers

    def _one_sided_field(self, layers: int, limit: int) -> int:
        """Return the number of tokens on one side, at most `limit`, that influence a position after `layers` layers."""
        total = 0
        for layer in range(layers):
            reach = self.reach(layer)
            if reach is None or total >= limit:
                return limit
            total += reach
        return min(total, limit)


def recurrence() -> Mechanism:
    """Return a bidirectional recurrent layer."""
    return Mechanism("recurrence, bidirectional", lambda layer: None, stepwise=True)


def convolution(kernel: int) -> Mechanism:
    """Return a convolution with an odd kernel width ≥ 3."""
    return Mechanism(f"convolution, kernel {kernel}", lambda layer: kernel // 2)


def dilated_convolution(kernel: int, dilations: tuple[int, ...]) -> Mechanism:
    """Return a dilated convolution with an odd kernel width ≥ 3.

    dilations: dilation of each layer, repeated cyclically.
    """
    dilation_list = ", ".join(map(str, dilations))
    return Mechanism(
        f"convolution, kernel {kernel}, dilation {dilation_list}",
        lambda layer: kernel // 2 * dilations[layer % len(dilations)],
    )


def attention() -> Mechanism:
    """Return softmax or linear attention over all tokens."""
    return Mechanism("attention, full", lambda layer: None)


def windowed_attention(window: int) -> Mechanism:
    """Return attention over `window` tokens on each side."""
    return Mechanism(f"attention, window of {window} to each side", lambda layer: window)


MECHANISMS = (
    recurrence(),
    convolution(3),
    dilated_convolution(3, (1, 2, 4, 8, 16)),
    attention(),
    windowed_attention(8),
)
"""The kinds of layers in `reach_table`."""


def influence(encoder: Encoder, table: Tensor, tokens: Tensor, position: int) -> Tensor:
    """Return a mask (S,) bool that is True for tokens that influence the encoder's output at `position`.

    A token influences the output if the gradient with respect to its embedding is not zero. Use a model in float64, in
    which gradients along a long path are small but not zero. table: the encoder's embedding table (V, d). tokens: (S,),
    distinct ids.
    """
    states = encoder(tokens[None], torch.ones(1, len(tokens), dtype=torch.bool)).states
    # weights differ, because the sum of a layer-normalised vector is constant
    weights = torch.linspace(1, 2, states.size(2), dtype=states.dtype).square()
    (gradient,) = torch.autograd.grad((states[0, position] * weights).sum(), table)
    has_influence: Tensor = gradient[tokens].abs().sum(1) > 0
    return has_influence


def reach_table(layers: int, length: int) -> str:
    """Return a table with one line per mechanism."""
    heads = ("kind of layer", f"path length, first to last of {length} tokens", f"receptive field of {layers} layers")
    rows = [
        (each.name, str(each.path_length(max(1, length - 1))), f"{each.receptive_field(layers, length)} tokens")
        for each in MECHANISMS
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    )
