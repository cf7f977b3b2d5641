"""The vanilla recurrent cell."""

from typing import ClassVar

import torch
from torch import Tensor

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
        """The whole gradient flows through the product."""
        torch.addcmul(gradients[0], gradients[0] * after[0], after[0], value=-1, out=to_gates)
        gradients[0].zero_()
