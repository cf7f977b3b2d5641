"""How far apart two tokens may stand to be one step apart: path length and receptive field of each kind of layer.

Vaswani et al. 2017, table 1, and deck 001; here as exact counts, which tests compare with the gradients of models.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.models.interface import Encoder


@dataclass(frozen=True)
class Mechanism:
    """A kind of layer that reads a text. reach: tokens to either side that layer l = 0, 1, … sees, None for all.

    stepwise: a layer passes what it sees on from token to token, so that the path is as long as the distance.
    """

    name: str
    reach: Callable[[int], int | None]
    stepwise: bool = False

    def receptive_field(self, layers: int, length: int) -> int:
        """Tokens of a text of `length` that can change the result in its middle, after so many layers."""
        middle = length // 2
        left, right = (self._reached(layers, side) for side in (middle, length - 1 - middle))
        return left + 1 + right

    def path_length(self, distance: int) -> int:
        """Operations that a signal passes from a token to another one, `distance` > 0 tokens away."""
        if self.stepwise:
            return distance
        layers = 1
        while self._reached(layers, distance) < distance:
            layers += 1
        return layers

    def _reached(self, layers: int, most: int) -> int:
        """Tokens to one side, `most` of which there are."""
        total = 0
        for layer in range(layers):
            reach = self.reach(layer)
            if reach is None or total >= most:
                return most
            total += reach
        return min(total, most)


def recurrence() -> Mechanism:
    """A recurrent layer that reads both ways."""
    return Mechanism("recurrence, both ways", lambda layer: None, stepwise=True)


def convolution(kernel: int) -> Mechanism:
    """Convolutions of an odd `kernel` ≥ 3."""
    return Mechanism(f"convolution, kernel {kernel}", lambda layer: kernel // 2)


def dilated_convolution(kernel: int, dilations: tuple[int, ...]) -> Mechanism:
    """Convolutions of an odd `kernel` ≥ 3 whose taps are dilations[l] apart, over again after the last."""
    shown = ", ".join(map(str, dilations))
    return Mechanism(
        f"convolution, kernel {kernel}, dilated by {shown}",
        lambda layer: kernel // 2 * dilations[layer % len(dilations)],
    )


def attention() -> Mechanism:
    """Attention over all tokens, softmax or linear."""
    return Mechanism("attention, full", lambda layer: None)


def windowed_attention(window: int) -> Mechanism:
    """Attention over `window` tokens to either side."""
    return Mechanism(f"attention, window of {window} to each side", lambda layer: window)


MECHANISMS = (
    recurrence(),
    convolution(3),
    dilated_convolution(3, (1, 2, 4, 8, 16)),
    attention(),
    windowed_attention(8),
)
"""Those that the table shows."""


def influence(encoder: Encoder, table: Tensor, tokens: Tensor, place: int) -> Tensor:
    """Which of `tokens` (S,), distinct ids, change the encoder's result at `place`: (S,) bool, by its gradient.

    table: (V, d), the embeddings that it reads. It should compute in float64, in which a gradient that has come a long
    way is small but not 0.
    """
    states = encoder(tokens[None], torch.ones(1, len(tokens), dtype=torch.bool)).states
    # an uneven sum: the plain one of a layer-normalised vector never changes
    weights = torch.linspace(1, 2, states.size(2), dtype=states.dtype).square()
    (gradient,) = torch.autograd.grad((states[0, place] * weights).sum(), table)
    changed: Tensor = gradient[tokens].abs().sum(1) > 0
    return changed


def reach_table(layers: int, length: int) -> str:
    """For people: a line a mechanism."""
    heads = ("kind of layer", f"path length, first to last of {length} tokens", f"receptive field of {layers} layers")
    rows = [
        (each.name, str(each.path_length(max(1, length - 1))), f"{each.receptive_field(layers, length)} tokens")
        for each in MECHANISMS
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    )
