"""Construct multi-head attention that computes a given convolution (Cordonnier et al. 2020, theorem 1).

The construction is not part of any model. It demonstrates the expressiveness of attention (docs/lecture/heads.md).
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
"""Score of the key that a head attends to. All other keys have score 0, and e^−200 is 0 in float32."""


def attention_as_convolution(offsets: Sequence[int], weight: Tensor, bias: Tensor | None = None) -> SoftAttention:
    """Return attention that computes a convolution with the given kernel.

    The output at position t is Σ_j weight[:, :, j] · x_(t + offsets[j]) + bias, if all these positions exist. offsets:
    distinct offsets, one per head. weight: (output channels, input channels, heads). bias: (output channels,).

    The query of head j is the bias of W_q, so it is the same at every position. It matches only the relative key w^K
    of offset offsets[j] (Shaw et al. 2018). The attention weight of the head is therefore 1 at this offset and 0 at all
    others. The head's values are the unprojected states, and its columns of W_O are the kernel's matrix for the offset.
    """
    heads = len(offsets)
    outputs, inputs, _ = weight.shape
    # one more than the largest offset, because larger distances share the last row
    relative = RelativeConfig(distance=max(map(abs, offsets)) + 1, values=False)
    config = SoftAttentionConfig(key_width=heads, value_width=inputs)
    attention = config.build(AttentionSizes(inputs, inputs, outputs, heads), relative)
    assert isinstance(attention, SoftAttention) and isinstance(attention.relation, Relative)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.zero_()
        one_hot = torch.eye(heads)
        attention.query.bias.copy_((_SHARPNESS * heads**0.5 * one_hot).flatten())
        for head, offset in enumerate(offsets):
            attention.relation.key_table[offset + attention.relation.distance] = one_hot[head]
        attention.value.weight.copy_(torch.eye(inputs).repeat(heads, 1))
        attention.output.weight.copy_(weight.permute(0, 2, 1).flatten(1))
        if bias is not None:
            attention.output.bias.copy_(bias)
    return attention.requires_grad_(False)


class AttentionConvolution1d(nn.Module):
    """Computes `torch.nn.functional.conv1d(…, padding="same")` by attention."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, dilation: int = 1) -> None:
        """Build the attention. weight: (output channels, input channels, k). bias: (output channels,)."""
        super().__init__()
        size = weight.size(2)
        self.left = dilation * (size - 1) // 2
        self.right = dilation * (size - 1) - self.left
        self.attention = attention_as_convolution([dilation * j - self.left for j in range(size)], weight, bias)

    def forward(self, states: Tensor) -> Tensor:
        """Map states (B, input channels, T) to (B, output channels, T).

        The zeros added as padding are treated like tokens.
        """
        padded = functional.pad(states, (self.left, self.right)).transpose(1, 2)
        return _attend_all(self.attention, padded)[:, self.left : self.left + states.size(2)].transpose(1, 2)


class AttentionConvolution2d(nn.Module):
    """Computes `torch.nn.functional.conv2d(…, padding="same")` by attention over the pixels in row-major order."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, columns: int) -> None:
        """Build the attention.

        weight: (output channels, input channels, k, k'). bias: (output channels,). columns: image width in pixels.
        """
        super().__init__()
        kernel_rows, kernel_columns = weight.shape[2:]
        self.top, self.left = (kernel_rows - 1) // 2, (kernel_columns - 1) // 2
        self.bottom, self.right = kernel_rows - 1 - self.top, kernel_columns - 1 - self.left
        width = columns + kernel_columns - 1
        offsets = [(y - self.top) * width + x - self.left for y in range(kernel_rows) for x in range(kernel_columns)]
        self.attention = attention_as_convolution(offsets, weight.flatten(2), bias)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, input channels, rows, columns) to (B, output channels, rows, columns)."""
        padded = functional.pad(images, (self.left, self.right, self.top, self.bottom))
        states = _attend_all(self.attention, padded.flatten(2).transpose(1, 2))
        grid = states.transpose(1, 2).reshape(len(images), -1, *padded.shape[2:])
        return grid[..., self.top : self.top + images.size(2), self.left : self.left + images.size(3)]


def _attend_all(attention: SoftAttention, states: Tensor) -> Tensor:
    mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return attention.self_attend(states, Mask.padding(mask))
