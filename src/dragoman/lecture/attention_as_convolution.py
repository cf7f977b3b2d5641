"""Construct multi-head attention that computes a given convolution (Cordonnier et al. 2020, theorem 1).

No model uses it. It shows what attention can express, from Python (docs/variants.md).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import Mask
from dragoman.nn.positions.relative import Relative, RelativeConfig

_SHARPNESS = 200.0
"""Score of the key that a head attends; all others score 0, and e^−200 is 0 in float32."""


def attention_as_convolution(offsets: Sequence[int], weight: Tensor, bias: Tensor | None = None) -> SoftAttention:
    """Return attention whose output at t is Σ_j weight[:, :, j] · x_(t + offsets[j]) + bias, where these tokens exist.

    offsets: distinct, one per head. weight: (output channels, input channels, heads). bias: (output channels,).
    The query of head j is the same at every position, a bias of W_q. It matches only the row of distance offsets[j] of
    the relative scheme's w^K (Shaw et al. 2018), so the head's softmax is 1 there and 0 elsewhere. The head's values
    are the states themselves, and its columns of W_O are the kernel's matrix for that distance.
    """
    heads = len(offsets)
    outputs, inputs, _ = weight.shape
    # one more than the largest offset, because all farther distances share the last row
    relative = RelativeConfig(distance=max(map(abs, offsets)) + 1, values=False)
    config = SoftAttentionConfig(key_width=heads, value_width=inputs)
    built = config.build(AttentionSizes(inputs, inputs, outputs, heads), relative)
    assert isinstance(built, SoftAttention) and isinstance(built.relation, Relative)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.zero_()
        one_each = torch.eye(heads)
        built.query.bias.copy_((_SHARPNESS * heads**0.5 * one_each).flatten())
        for head, offset in enumerate(offsets):
            built.relation.key_table[offset + built.relation.distance] = one_each[head]
        built.value.weight.copy_(torch.eye(inputs).repeat(heads, 1))
        built.output.weight.copy_(weight.permute(0, 2, 1).flatten(1))
        if bias is not None:
            built.output.bias.copy_(bias)
    return built.requires_grad_(False)


class AttentionConvolution1d(nn.Module):
    """`torch.nn.functional.conv1d(…, padding="same")`, computed by attention."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, dilation: int = 1) -> None:
        """weight: (output channels, input channels, k). bias: (output channels,)."""
        super().__init__()
        size = weight.size(2)
        self.left = dilation * (size - 1) // 2
        self.right = dilation * (size - 1) - self.left
        self.attention = attention_as_convolution([dilation * j - self.left for j in range(size)], weight, bias)

    def forward(self, states: Tensor) -> Tensor:
        """(B, input channels, T) → (B, output channels, T). Zeros beyond the ends are attended like tokens."""
        padded = functional.pad(states, (self.left, self.right)).transpose(1, 2)
        return _attend_all(self.attention, padded)[:, self.left : self.left + states.size(2)].transpose(1, 2)


class AttentionConvolution2d(nn.Module):
    """`torch.nn.functional.conv2d(…, padding="same")`, computed by attention over the pixels in row-major order."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, columns: int) -> None:
        """weight: (output channels, input channels, k, k'). columns: width of the images in pixels."""
        super().__init__()
        rows, across = weight.shape[2:]
        self.top, self.left = (rows - 1) // 2, (across - 1) // 2
        self.bottom, self.right = rows - 1 - self.top, across - 1 - self.left
        width = columns + across - 1
        offsets = [(y - self.top) * width + x - self.left for y in range(rows) for x in range(across)]
        self.attention = attention_as_convolution(offsets, weight.flatten(2), bias)

    def forward(self, images: Tensor) -> Tensor:
        """(B, input channels, rows, columns) → (B, output channels, rows, columns)."""
        padded = functional.pad(images, (self.left, self.right, self.top, self.bottom))
        found = _attend_all(self.attention, padded.flatten(2).transpose(1, 2))
        grid = found.transpose(1, 2).reshape(len(images), -1, *padded.shape[2:])
        return grid[..., self.top : self.top + images.size(2), self.left : self.left + images.size(3)]


def _attend_all(attention: SoftAttention, states: Tensor) -> Tensor:
    mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return attention.self_attend(states, Mask.padding(mask))
