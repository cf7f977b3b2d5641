"""Long short-term memory."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from dragoman.nn.recurrent.cell import Cell, States, tanh_


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
        """Pass c's gradient on through f; h's flows through the product only. Recomputing tanh(c') is cheapest."""
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
