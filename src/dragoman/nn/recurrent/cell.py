"""`Cell`: one recurrent layer in one direction, a scan over time with a hand-written backward pass."""

from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

States = tuple[Tensor, ...]
"""The states passed from one token to the next: the hidden state h and, for an LSTM, the cell state c."""


class Cell(nn.Module):
    """h_t from W_1x_1 + … + b (the drive, computed for all time steps at once) and Uh_{t−1} (the product, in the loop).

    A cell overrides `advance` and `retreat`, the elementwise part of one time step and its derivative. `Scan` does the
    rest, at the cost of one matrix product per step forward, one backward, and one for U's gradient at the end.

    gates: number of vectors of width H in drive and product. components: number of tensors in its `States`. kept:
    number of vectors of width H that `advance` saves for `retreat`. ahead: number of gates of the drive before the
    first one that it shares with the product, for cells whose gates are not all sums of the two. Each input has its own
    weight, because some inputs are known only inside the loop.

    Initialisation, per gate: W as in Glorot & Bengio 2010; U orthogonal (Saxe et al. 2014; Bahdanau et al. 2015,
    appendix B.1); b zero.
    """

    gates: ClassVar[int]
    components: ClassVar[int] = 1
    kept: ClassVar[int]
    ahead: ClassVar[int] = 0

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        rows = self.gates * hidden
        self.input_weights = nn.ParameterList(nn.Parameter(torch.empty(rows, width)) for width in inputs)
        self.recurrent_weight = nn.Parameter(torch.empty(rows, hidden))
        self.bias = nn.Parameter(torch.zeros(rows))
        for weight in self.input_weights:
            bound = sqrt(6 / (sum(inputs) + hidden))
            nn.init.uniform_(weight, -bound, bound)
        for gate in torch.split(self.recurrent_weight.detach(), hidden):
            nn.init.orthogonal_(gate)

    def drive(self, inputs: Tensor, index: int = 0) -> Tensor:
        """Input number `index` (…, width) → its part of the drive (…, gates·H); the first input's includes the bias."""
        return functional.linear(inputs, self.input_weights[index], self.bias if index == 0 else None)

    def forward(self, drive: Tensor, states: States) -> States:
        """drive (T, R, gates·H) and states (R, H) each → the states after each of the T tokens, (T, R, H) each.

        Under autocast the matrix products use its type; states and elementwise operations keep the parameters' type.
        """
        weight, bias = self.recurrent_weight, self.product_bias()
        states = tuple(state.to(weight.dtype) for state in states)
        if torch.is_grad_enabled():
            return Scan.apply(self, drive, weight, bias, *states)  # type: ignore[no-any-return,no-untyped-call]
        return _run(self, drive, weight, bias, states, keep=False)[0]

    def product_bias(self) -> Tensor | None:
        """Return the bias (gates·H) of the product Uh, or None if it can be part of the drive."""
        return None

    @staticmethod
    def advance(drive: Tensor, product: Tensor, before: States, after: States, kept: Tensor) -> None:
        """Compute one step: write the states `after` (R, H) and `kept` (R, kept·H), whatever they contained.

        drive and product (R, gates·H) and the states `before` are not changed.
        """
        raise NotImplementedError

    @staticmethod
    def retreat(gradients: list[Tensor], before: States, after: States, kept: Tensor, to_gates: Tensor) -> None:
        """Backpropagate one step: gradients (R, H), one per state, of `after` are replaced by those of `before`.

        They exclude the part through the product. to_gates (R, (ahead + gates)·H) is written: its start is the drive's
        gradient, its end the product's.
        """
        raise NotImplementedError


class Scan(torch.autograd.Function):
    """A cell over all T time steps."""

    @staticmethod
    def forward(
        context: Any, cell: Cell, drive: Tensor, weight: Tensor, bias: Tensor | None, *states: Tensor
    ) -> tuple[Tensor, ...]:
        """As `Cell.forward`."""
        outputs, path, factors, kept, factor = _run(cell, drive, weight, bias, states, keep=True)
        context.cell, context.drive_type, context.biased = cell, drive.dtype, bias is not None
        context.save_for_backward(kept, factor, factors, *path)
        context.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(context: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Backpropagate through time; U's gradient is one product over all time steps."""
        cell = context.cell
        kept, factor, factors, *path = context.saved_tensors
        length, rows = kept.shape[:2]
        ahead, width = cell.ahead * cell.hidden, cell.gates * cell.hidden
        to_gates = kept.new_empty(length, rows, ahead + width, dtype=factor.dtype)
        scratch = None if factor.dtype == kept.dtype else kept.new_empty(rows, ahead + width)
        carried = [kept.new_zeros(rows, cell.hidden) for _ in path]
        with torch.autocast(kept.device.type, enabled=False):
            for time in reversed(range(length)):
                for carry, gradient in zip(carried, gradients, strict=True):
                    if gradient is not None:
                        carry += gradient[time]
                before, after = (tuple(state[time + offset] for state in path) for offset in (0, 1))
                cell.retreat(carried, before, after, kept[time], to_gates[time] if scratch is None else scratch)
                if scratch is not None:
                    to_gates[time] = scratch
                carried[0] += to_gates[time, :, ahead:] @ factor
            through = to_gates[:, :, ahead:].view(-1, width)
            to_weight = through.t() @ factors[:-1].reshape(-1, cell.hidden)
            to_bias = through.sum(0).to(kept.dtype) if context.biased else None
        to_drive = to_gates[:, :, :width].to(context.drive_type)
        return None, to_drive, to_weight.to(kept.dtype), to_bias, *carried


def _run(
    cell: Cell, drive: Tensor, weight: Tensor, bias: Tensor | None, states: States, keep: bool
) -> tuple[States, list[Tensor], Tensor, Tensor, Tensor]:
    """Run the scan.

    Returns the states (T, R, H) after each token; these states preceded by the initial ones (T+1, R, H); their h in the
    type of matrix products; the vectors saved by `advance` (T, R, kept·H), only those of the last step unless `keep`;
    and U in the type of matrix products.
    """
    device = weight.device.type
    kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    length, rows, _ = drive.shape
    path = [state.new_empty(length + 1, rows, cell.hidden) for state in states]
    for steps, state in zip(path, states, strict=True):
        steps[0] = state
    kept = path[0].new_empty(length if keep else 1, rows, cell.kept * cell.hidden)
    with torch.autocast(device, enabled=False):
        factor = weight.to(kind)
        transposed = factor.t()
        cast = kind != weight.dtype
        factors = path[0].to(kind) if cast else path[0]
        for time in range(length):
            if cast and time:
                factors[time] = path[0][time]
            product = factors[time] @ transposed
            if cast:
                product = product.to(weight.dtype)
            if bias is not None:
                product += bias
            before, after = (tuple(steps[time + offset] for steps in path) for offset in (0, 1))
            cell.advance(drive[time], product, before, after, kept[time if keep else 0])
    return tuple(steps[1:] for steps in path), path, factors, kept, factor


def tanh_(values: Tensor) -> Tensor:
    """Compute tanh in place as 2σ(2x) − 1, accurate to a rounding of 1 and three times as fast as torch's on a CPU."""
    return values.mul_(2).sigmoid_().mul_(2).sub_(1)
