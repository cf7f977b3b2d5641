"""Convolution over positions: centred for whole texts, causal for step-by-step decoding."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Convolution(nn.Module):
    """y_t = b + Σ_i W_i x_{t + i·dilation − left} for i < kernel, on tensors (B, T, d).

    It is equivalent to torch's Conv1d, but computed as one matrix product over the `kernel` concatenated neighbours. On
    a CPU, a decoder step takes a third of Conv1d's time (320 rows, width 256 → 512, kernel 3), and training on whole
    texts takes 1 to 1.5 times as long as with Conv1d. W is initialised from N(0, gain/(kernel·width)) and b with zeros.

    gain: variance of y for an input of variance 1.
    """

    def __init__(self, width: int, output: int, kernel: int, dilation: int = 1, gain: float = 1.0) -> None:
        super().__init__()
        self.kernel, self.dilation = kernel, dilation
        self.reach = (kernel - 1) * dilation
        self.weight = nn.Parameter(torch.empty(output, kernel, width))
        self.bias = nn.Parameter(torch.zeros(output))
        nn.init.normal_(self.weight, std=(gain / (kernel * width)) ** 0.5)

    def centred(self, states: Tensor, mask: Tensor) -> Tensor:
        """Apply the centred convolution: (B, S, width) → (B, S, output).

        An even kernel covers one more position on the right than on the left. Positions beyond the ends are zero. mask:
        (B, S) bool, False at padding, which is treated as zero too.
        """
        left = self.reach // 2
        states = states.masked_fill(~mask.unsqueeze(2), 0.0)
        return self._product(functional.pad(states, (0, 0, left, self.reach - left)))

    def causal(self, states: Tensor, past: Tensor | None, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Apply the causal convolution to new tokens (R, T, width).

        Returns the outputs (R, T, output) and `past` for the next call. past: (R, reach, width), the last inputs; None,
        meaning zeros, before the first token. mask: (R, T) bool, False at padding before the first token of a row,
        which is treated as zero; None if there is no padding.
        """
        if mask is not None:
            states = states.masked_fill(~mask.unsqueeze(2), 0.0)
        if past is None:
            past = states.new_zeros(states.size(0), self.reach, states.size(2))
        inputs = torch.cat((past, states), 1)
        return self._product(inputs), inputs[:, states.size(1) :]

    def _product(self, padded: Tensor) -> Tensor:
        length = padded.size(1) - self.reach
        neighbours = [padded[:, i * self.dilation : i * self.dilation + length] for i in range(self.kernel)]
        concatenated = neighbours[0] if self.kernel == 1 else torch.cat(neighbours, -1)
        return functional.linear(concatenated, self.weight.flatten(1), self.bias)
