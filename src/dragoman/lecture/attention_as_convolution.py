"""Multi-head attention that is a given convolution (Cordonnier et al. 2020, theorem 1), constructed, not learned.

No model is built of it: it is for those who teach or study what attention can express, in Python (docs/variants.md).
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
"""The score of the one key that a head attends, the others' being 0: e^−200 is 0 in float32."""


def attention_as_convolution(offsets: Sequence[int], weight: Tensor, bias: Tensor | None = None) -> SoftAttention:
    """Attention whose result at t is Σ_j weight[:, :, j] · x_(t + offsets[j]) + bias, where all these tokens exist.

    offsets: distinct, one a head; weight: (channels out, channels in, heads); bias: (channels out,). Head j asks with
    the same query for every token, a bias of W_q, which meets one row only of the relative scheme's w^K (Shaw et al.
    2018): that of distance offsets[j]. So its softmax is 1 there and 0 elsewhere, its values are the states as they
    are, and its columns of W_O are the kernel's matrix for that distance.
    """
    heads = len(offsets)
    outputs, inputs, _ = weight.shape
    # one further than is attended, because all that is farther away shares the last row
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
    """What `torch.nn.functional.conv1d(…, padding="same")` computes, by attention."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, dilation: int = 1) -> None:
        """weight: (channels out, channels in, k)."""
        super().__init__()
        size = weight.size(2)
        self.left = dilation * (size - 1) // 2
        self.right = dilation * (size - 1) - self.left
        self.attention = attention_as_convolution([dilation * j - self.left for j in range(size)], weight, bias)

    def forward(self, states: Tensor) -> Tensor:
        """(B, channels in, T) → (B, channels out, T). What lies beyond the ends is zeros, attended as tokens."""
        padded = functional.pad(states, (self.left, self.right)).transpose(1, 2)
        return _everywhere(self.attention, padded)[:, self.left : self.left + states.size(2)].transpose(1, 2)


class AttentionConvolution2d(nn.Module):
    """What `torch.nn.functional.conv2d(…, padding="same")` computes, by attention over the pixels, row after row."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, columns: int) -> None:
        """weight: (channels out, channels in, k, k'); columns: of the images, on which a row's distance depends."""
        super().__init__()
        rows, across = weight.shape[2:]
        self.top, self.left = (rows - 1) // 2, (across - 1) // 2
        self.bottom, self.right = rows - 1 - self.top, across - 1 - self.left
        width = columns + across - 1
        offsets = [(y - self.top) * width + x - self.left for y in range(rows) for x in range(across)]
        self.attention = attention_as_convolution(offsets, weight.flatten(2), bias)

    def forward(self, images: Tensor) -> Tensor:
        """(B, channels in, rows, columns) → (B, channels out, rows, columns)."""
        padded = functional.pad(images, (self.left, self.right, self.top, self.bottom))
        found = _everywhere(self.attention, padded.flatten(2).transpose(1, 2))
        grid = found.transpose(1, 2).reshape(len(images), -1, *padded.shape[2:])
        return grid[..., self.top : self.top + images.size(2), self.left : self.left + images.size(3)]


def _everywhere(attention: SoftAttention, states: Tensor) -> Tensor:
    keep = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return attention.self_attend(states, Mask.padding(keep))
