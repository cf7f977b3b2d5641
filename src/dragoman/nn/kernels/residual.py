"""Dropout, residual connection and layer normalisation of packed rows in one pass over memory each way."""

from typing import Any

import torch
from torch import Tensor

from dragoman.nn.kernels.backend import kernels
from dragoman.nn.kernels.interface import DropoutDraw, NormInputs, NormResults
from dragoman.nn.randomness import generator


class _DroppedOut(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor, draw: DropoutDraw) -> Tensor:
        context.draw = draw
        return drop(values, draw)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return drop(gradient, context.draw), None


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, states: Tensor, result: Tensor, draw: DropoutDraw) -> Tensor:
        context.draw = draw
        states, result = states.contiguous(), result.contiguous()
        out = torch.empty_like(states)
        kernels(states.device).add(states, result, out, draw)
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        return gradient, drop(gradient, context.draw) if context.draw.rate else gradient, None


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        result: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        draw: DropoutDraw,
    ) -> Tensor:
        states = states.contiguous()
        rows = states.numel() // states.size(-1)
        result = None if result is None else result.contiguous()
        sums = states if result is None else torch.empty_like(states)
        means, deviations = (torch.empty(rows, device=states.device) for _ in range(2))
        results = NormResults(sums, torch.empty_like(states), means, deviations)
        kernels(states.device).normalise(NormInputs(states, result, weight, bias), results, epsilon, draw)
        context.save_for_backward(sums, weight, means, deviations)
        context.draw, context.residual = draw, result is not None
        return results.out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        sums, weight, means, deviations = context.saved_tensors
        state_gradient = torch.empty_like(sums)
        separate = torch.empty_like(sums) if context.residual and context.draw.rate > 0 else None
        parameters = weight.new_empty(2, len(weight))
        kernels(sums.device).differentiate_norm(
            gradient.contiguous(),
            (sums, weight, means, deviations),
            (state_gradient, separate, parameters),
            context.draw,
        )
        result_gradient = None if not context.residual else state_gradient if separate is None else separate
        return state_gradient, result_gradient, *parameters, None, None


def dropped_out(values: Tensor, rate: float, factor: Tensor | None = None) -> Tensor:
    """Return values of any shape after inverted dropout. Differentiable.

    factor: scalar on the device, by which the rate is multiplied when the kernel runs, so that a recorded graph can be
    repeated with other rates; None: 1.
    """
    result: Tensor = _DroppedOut.apply(values, draw_dropout(values, rate, factor))  # type: ignore[no-untyped-call]
    return result


def added(states: Tensor, result: Tensor, rate: float, factor: Tensor | None = None) -> Tensor:
    """Return states + dropout(result), both (…, d). Differentiable. factor: as in `dropped_out`."""
    sums: Tensor = _Added.apply(states, result, draw_dropout(states, rate, factor))  # type: ignore[no-untyped-call]
    return sums


def normalised(
    states: Tensor,
    result: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    *,
    epsilon: float,
    rate: float,
    factor: Tensor | None = None,
) -> Tensor:
    """Return the layer normalisation of states + dropout(result), both (…, d); of states if result is None.

    weight, bias: gain and offset (d,). factor: as in `dropped_out`. The sum is rounded once; mean and variance are
    computed in float32. Differentiable.
    """
    draw = draw_dropout(states, rate, factor)
    out: Tensor = _Normalised.apply(states, result, weight, bias, epsilon, draw)  # type: ignore[no-untyped-call]
    return out


def draw_dropout(like: Tensor, rate: float, factor: Tensor | None) -> DropoutDraw:
    """Draw a seed from the generator of the thread or the device, which also works in a CUDA graph."""
    device = like.device
    seed = torch.randint(1 << 62, (1,), dtype=torch.int64, device=device, generator=generator(device))
    return DropoutDraw(seed, rate, torch.ones((), device=device) if factor is None else factor)


def drop(values: Tensor, draw: DropoutDraw) -> Tensor:
    """Return values after a dropout, without a gradient."""
    values = values.contiguous()
    out = torch.empty_like(values)
    kernels(values.device).drop(values, out, draw)
    return out
