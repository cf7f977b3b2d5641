"""Path length and receptive field of each kind of layer (Vaswani et al. 2017, table 1; deck 001).

The counts are exact; tests compare them with the gradients of models.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.models.interface import Encoder


@dataclass(frozen=True)
class Mechanism:
    """A kind of layer.

    reach: number of tokens to either side that layer l = 0, 1, … reads, None for all. stepwise: whether a layer passes
    information from token to token, so that the path is as long as the distance.
    """

    name: str
    reach: Callable[[int], int | None]
    stepwise: bool = False

    def receptive_field(self, layers: int, length: int) -> int:
        """Return how many tokens of a text of `length` influence its middle position after `layers` layers."""
        middle = length // 2
        left, right = (self._reached(layers, side) for side in (middle, length - 1 - middle))
        return left + 1 + right

    def path_length(self, distance: int) -> int:
        """Return the number of operations on the path between two tokens that are `distance` > 0 positions apart."""
        if self.stepwise:
            return distance
        layers = 1
        while self._reached(layers, distance) < distance:
            layers += 1
        return layers

    def _reached(self, layers: int, limit: int) -> int:
        """Return how many of the `limit` tokens on one side influence a position after `layers` layers."""
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
    """Return convolutions with an odd `kernel` ≥ 3."""
    return Mechanism(f"convolution, kernel {kernel}", lambda layer: kernel // 2)


def dilated_convolution(kernel: int, dilations: tuple[int, ...]) -> Mechanism:
    """Return convolutions with an odd `kernel` ≥ 3 and dilation dilations[l] in layer l, repeated cyclically."""
    shown = ", ".join(map(str, dilations))
    return Mechanism(
        f"convolution, kernel {kernel}, dilation {shown}",
        lambda layer: kernel // 2 * dilations[layer % len(dilations)],
    )


def attention() -> Mechanism:
    """Return attention over all tokens, softmax or linear."""
    return Mechanism("attention, full", lambda layer: None)


def windowed_attention(window: int) -> Mechanism:
    """Return attention over `window` tokens to either side."""
    return Mechanism(f"attention, window of {window} to each side", lambda layer: window)


MECHANISMS = (
    recurrence(),
    convolution(3),
    dilated_convolution(3, (1, 2, 4, 8, 16)),
    attention(),
    windowed_attention(8),
)
"""The kinds of layers in the rows of `reach_table`."""


def influence(encoder: Encoder, table: Tensor, tokens: Tensor, position: int) -> Tensor:
    """Return (S,) bool: which of `tokens` (S,), distinct ids, influence the encoder's output at `position`.

    Influence is a non-zero gradient with respect to `table` (V, d), the embedding that the encoder reads. Use a model
    in float64, in which gradients along a long path are small but not zero.
    """
    states = encoder(tokens[None], torch.ones(1, len(tokens), dtype=torch.bool)).states
    # unequal weights: the plain sum of a layer-normalised vector is constant
    weights = torch.linspace(1, 2, states.size(2), dtype=states.dtype).square()
    (gradient,) = torch.autograd.grad((states[0, position] * weights).sum(), table)
    changed: Tensor = gradient[tokens].abs().sum(1) > 0
    return changed


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
