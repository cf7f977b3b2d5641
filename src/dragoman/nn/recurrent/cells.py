"""The recurrent cells by name. To add one, add a class here, to `CELLS` and to `CellKind`."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.recurrent.cell import Cell, States, tanh_


class VanillaCell(Cell):
    """h_t = tanh(Wx_t + b + Uh_{t−1}) (Elman 1990; deck 002's h_t = tanh(W_hh h_{t−1} + W_xh x_t))."""

    gates: ClassVar[int] = 1
    kept: ClassVar[int] = 0

    @staticmethod
    def advance(drive: Tensor, product: Tensor, before: States, after: States, kept: Tensor) -> None:
        """Compute the next state. Nothing is saved: tanh's derivative is a function of its value."""
        (hidden,) = after
        tanh_(torch.add(drive, product, out=hidden))

    @staticmethod
    def retreat(gradients: list[Tensor], before: States, after: States, kept: Tensor, to_gates: Tensor) -> None:
        """Write the gates' gradient; the states' gradient is zero here, because it flows through the product."""
        torch.addcmul(gradients[0], gradients[0] * after[0], after[0], value=-1, out=to_gates)
        gradients[0].zero_()


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


class LSTMCell(Cell):
    """i, f, o = σ(·), g = tanh(·) of Wx + b + Uh; c' = f ⊙ c + i ⊙ g; h' = o ⊙ tanh(c').

    Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000, whose bias is initialised to 1 (Jozefowicz
    et al. 2015). Order of the weights' rows: i, f, o, g, so that one σ covers three gates.
    """

    gates: ClassVar[int] = 4
    components: ClassVar[int] = 2
    kept: ClassVar[int] = 4

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.bias.detach()[hidden : 2 * hidden] = 1

    @staticmethod
    def advance(drive: Tensor, product: Tensor, before: States, after: States, kept: Tensor) -> None:
        """Compute the next states; kept: the gates."""
        width = before[0].size(1)
        torch.add(drive, product, out=kept)
        kept[:, : 3 * width].sigmoid_()
        i, f, o, g = torch.split(kept, width, 1)
        hidden, cell = after
        torch.mul(f, before[1], out=cell).addcmul_(i, tanh_(g))
        tanh_(hidden.copy_(cell)).mul_(o)

    @staticmethod
    def retreat(gradients: list[Tensor], before: States, after: States, kept: Tensor, to_gates: Tensor) -> None:
        """Backpropagate c through f; h's gradient flows through the product only. tanh(c') is cheapest to recompute."""
        width = before[0].size(1)
        i, f, o, g = torch.split(kept, width, 1)
        to_hidden, to_cell = gradients
        squashed = tanh_(after[1].clone())
        inner = to_hidden * o
        to_cell.add_(inner).sub_(inner.mul_(squashed).mul_(squashed))
        torch.mul(to_cell, g, out=to_gates[:, :width])
        torch.mul(to_cell, before[1], out=to_gates[:, width : 2 * width])
        torch.mul(to_hidden, squashed, out=to_gates[:, 2 * width : 3 * width])
        gates, sigmoids = to_gates[:, : 3 * width], kept[:, : 3 * width]
        gates.mul_(sigmoids)
        gates.addcmul_(gates, sigmoids, value=-1)
        to_new = to_cell * i
        torch.addcmul(to_new, to_new * g, g, value=-1, out=to_gates[:, 3 * width :])
        to_cell.mul_(f)
        to_hidden.zero_()


CELLS: dict[str, type[Cell]] = {"rnn": VanillaCell, "gru": GRUCell, "lstm": LSTMCell}
CellKind = Literal["rnn", "gru", "lstm"]
