"""The gated recurrent unit."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.recurrent.cell import Cell, States, tanh_


class GRUCell(Cell):
    """r, z = σ(W_r,z x + b_r,z + U_r,z h); n = tanh(W_n x + b_n + r ⊙ (U_n h + b'_n)); h' = (1 − z) ⊙ n + z ⊙ h.

    Cho et al. 2014 with the reset gate applied after the product, as in torch and cuDNN. Order of the rows of W and b:
    n, r, z; of U: r, z, n.
    """

    gates: ClassVar[int] = 3
    kept: ClassVar[int] = 4  # r, z, n, U_n h + b'_n
    ahead: ClassVar[int] = 1

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.recurrent_bias = nn.Parameter(torch.zeros(hidden))

    def product_bias(self) -> Tensor | None:
        """Return b'_n, which is multiplied by the reset gate, and 0 for the other gates."""
        return functional.pad(self.recurrent_bias, (2 * self.hidden, 0))

    @staticmethod
    def advance(drive: Tensor, product: Tensor, before: States, after: States, kept: Tensor) -> None:
        """Compute h' as n + z ⊙ (h − n)."""
        width = before[0].size(1)
        both, new, inner = kept[:, : 2 * width], kept[:, 2 * width : 3 * width], kept[:, 3 * width :]
        torch.add(drive[:, width:], product[:, : 2 * width], out=both).sigmoid_()
        inner.copy_(product[:, 2 * width :])
        torch.mul(both[:, :width], inner, out=new).add_(drive[:, :width])
        torch.lerp(tanh_(new), before[0], both[:, width:], out=after[0])

    @staticmethod
    def retreat(gradients: list[Tensor], before: States, after: States, kept: Tensor, to_gates: Tensor) -> None:
        """Write four gradients: of the drive's n, of r and z, shared by drive and product, and of the product's n."""
        width = before[0].size(1)
        reset, update, new, inner = torch.split(kept, width, 1)
        (gradient,) = gradients
        to_new, gates = to_gates[:, :width], to_gates[:, width : 3 * width]
        scaled = gradient - gradient * update
        torch.addcmul(scaled, scaled * new, new, value=-1, out=to_new)
        torch.mul(to_new, inner, out=gates[:, :width])
        torch.mul(gradient, before[0] - new, out=gates[:, width:])
        both = kept[:, : 2 * width]
        gates.mul_(both)
        gates.addcmul_(gates, both, value=-1)
        torch.mul(to_new, reset, out=to_gates[:, 3 * width :])
        gradient.mul_(update)
