"""Recurrent cells. To add a cell, define its class in this file and add it to `CELLS` and `CellKind`."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.recurrent.cell import Cell, States, tanh_


class VanillaCell(Cell):
    """h_t = tanh(Wx_t + b + Uh_{t−1}) (Elman 1990; deck 002's h_t = tanh(W_hh h_{t−1} + W_xh x_t))."""

    gates: ClassVar[int] = 1
    saved: ClassVar[int] = 0

    @staticmethod
    def forward_step(drive: Tensor, product: Tensor, before: States, after: States, saved: Tensor) -> None:
        """Compute the next state. Nothing is saved, because the derivative of tanh is a function of its value."""
        (hidden,) = after
        tanh_(torch.add(drive, product, out=hidden))

    @staticmethod
    def backward_step(
        gradients: list[Tensor], before: States, after: States, saved: Tensor, gate_gradients: Tensor
    ) -> None:
        """Write the gradient of the gates. The state's gradient is zero, because it flows only through the product."""
        torch.addcmul(gradients[0], gradients[0] * after[0], after[0], value=-1, out=gate_gradients)
        gradients[0].zero_()


class GRUCell(Cell):
    """r, z = σ(W_r,z x + b_r,z + U_r,z h); n = tanh(W_n x + b_n + r ⊙ (U_n h + b'_n)); h' = (1 − z) ⊙ n + z ⊙ h.

    The GRU of Cho et al. 2014, with the reset gate applied after the product, as in torch and cuDNN. The rows of W and
    b are in the order n, r, z, and those of U in the order r, z, n.
    """

    gates: ClassVar[int] = 3
    saved: ClassVar[int] = 4  # r, z, n, U_n h + b'_n
    drive_only_gates: ClassVar[int] = 1

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.recurrent_bias = nn.Parameter(torch.zeros(hidden))

    def product_bias(self) -> Tensor | None:
        """Return the bias of the product: b'_n, which is multiplied by the reset gate, and 0 for the other gates."""
        return functional.pad(self.recurrent_bias, (2 * self.hidden, 0))

    @staticmethod
    def forward_step(drive: Tensor, product: Tensor, before: States, after: States, saved: Tensor) -> None:
        """Compute h' as n + z ⊙ (h − n)."""
        width = before[0].size(1)
        both, new, inner = saved[:, : 2 * width], saved[:, 2 * width : 3 * width], saved[:, 3 * width :]
        torch.add(drive[:, width:], product[:, : 2 * width], out=both).sigmoid_()
        inner.copy_(product[:, 2 * width :])
        torch.mul(both[:, :width], inner, out=new).add_(drive[:, :width])
        torch.lerp(tanh_(new), before[0], both[:, width:], out=after[0])

    @staticmethod
    def backward_step(
        gradients: list[Tensor], before: States, after: States, saved: Tensor, gate_gradients: Tensor
    ) -> None:
        """Write four gradients: of n in the drive, of r and z, which drive and product share, and of n in the product.

        The gradient of h through z is left in `gradients`.
        """
        width = before[0].size(1)
        reset, update, new, inner = torch.split(saved, width, 1)
        (gradient,) = gradients
        to_new, gates = gate_gradients[:, :width], gate_gradients[:, width : 3 * width]
        scaled = gradient - gradient * update
        torch.addcmul(scaled, scaled * new, new, value=-1, out=to_new)
        torch.mul(to_new, inner, out=gates[:, :width])
        torch.mul(gradient, before[0] - new, out=gates[:, width:])
        both = saved[:, : 2 * width]
        gates.mul_(both)
        gates.addcmul_(gates, both, value=-1)
        torch.mul(to_new, reset, out=gate_gradients[:, 3 * width :])
        gradient.mul_(update)


class LSTMCell(Cell):
    """i, f, o = σ(·), g = tanh(·) of Wx + b + Uh; c' = f ⊙ c + i ⊙ g; h' = o ⊙ tanh(c').

    The LSTM of Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000. The bias of the forget gate is
    initialised to 1 (Jozefowicz et al. 2015). The rows of the weights are in the order i, f, o, g, so that σ is applied
    to three gates at once.
    """

    gates: ClassVar[int] = 4
    components: ClassVar[int] = 2
    saved: ClassVar[int] = 4

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.bias.detach()[hidden : 2 * hidden] = 1

    @staticmethod
    def forward_step(drive: Tensor, product: Tensor, before: States, after: States, saved: Tensor) -> None:
        """Compute the next states and save the gates."""
        width = before[0].size(1)
        torch.add(drive, product, out=saved)
        saved[:, : 3 * width].sigmoid_()
        i, f, o, g = torch.split(saved, width, 1)
        hidden, cell = after
        torch.mul(f, before[1], out=cell).addcmul_(i, tanh_(g))
        tanh_(hidden.copy_(cell)).mul_(o)

    @staticmethod
    def backward_step(
        gradients: list[Tensor], before: States, after: States, saved: Tensor, gate_gradients: Tensor
    ) -> None:
        """Write the gradients of the gates and of c. The gradient of h flows only through the product.

        tanh(c') is recomputed, which is cheaper than saving it.
        """
        width = before[0].size(1)
        i, f, o, g = torch.split(saved, width, 1)
        to_hidden, to_cell = gradients
        squashed = tanh_(after[1].clone())
        inner = to_hidden * o
        to_cell.add_(inner).sub_(inner.mul_(squashed).mul_(squashed))
        torch.mul(to_cell, g, out=gate_gradients[:, :width])
        torch.mul(to_cell, before[1], out=gate_gradients[:, width : 2 * width])
        torch.mul(to_hidden, squashed, out=gate_gradients[:, 2 * width : 3 * width])
        gates, sigmoids = gate_gradients[:, : 3 * width], saved[:, : 3 * width]
        gates.mul_(sigmoids)
        gates.addcmul_(gates, sigmoids, value=-1)
        to_new = to_cell * i
        torch.addcmul(to_new, to_new * g, g, value=-1, out=gate_gradients[:, 3 * width :])
        to_cell.mul_(f)
        to_hidden.zero_()


CELLS: dict[str, type[Cell]] = {"rnn": VanillaCell, "gru": GRUCell, "lstm": LSTMCell}
CellKind = Literal["rnn", "gru", "lstm"]
