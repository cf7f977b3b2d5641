"""Dropout, residual connection and layer normalisation of packed rows in one pass over memory each way.

Random numbers are hashes of a seed and the element's index, so that the backward pass computes them again instead of
reading a mask.
"""

from typing import Any

import torch
from torch import Tensor

from dragoman.nn.kernels.sums import summed

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs does not include Triton
    triton = None

AVAILABLE = triton is not None

_PROGRAMS = 512
"""Number of programs that share the rows in the backward pass; each sums gradients of weights over its rows."""

_BLOCK = 1024
"""Number of elements that one program of an element-wise operation processes."""

if triton is not None:

    @triton.jit
    def _mixed(value):  # type: ignore[no-untyped-def]
        """The finaliser `lowbias32` of Wellons, "Prospecting for hash functions" (2018)."""
        value = (value ^ (value >> 16)) * 0x7FEB352D
        value = (value ^ (value >> 15)) * 0x846CA68B
        return value ^ (value >> 16)

    @triton.jit
    def _kept(seed, places, rate, factor):  # type: ignore[no-untyped-def]
        """Return 1 / (1 − rate · factor) with probability 1 − rate · factor, otherwise 0."""
        rate *= tl.load(factor)
        drawn = tl.load(seed)
        low, high = drawn.to(tl.uint32), (drawn >> 32).to(tl.uint32)
        bits = _mixed(_mixed(places.to(tl.uint32) ^ low) + high)
        uniform = (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)
        return tl.where(uniform >= rate, 1.0 / (1.0 - rate), 0.0)

    @triton.jit
    def _dropout(values, out, seed, rate, factor, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(values + places, mask=places < size, other=0.0).to(tl.float32)
        result = value * _kept(seed, places, rate, factor)
        tl.store(out + places, result.to(out.dtype.element_ty), mask=places < size)

    @triton.jit
    def _add(states, result, out, seed, rate, factor, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = places < size
        value = tl.load(result + places, mask=inside, other=0.0).to(tl.float32) * _kept(seed, places, rate, factor)
        value += tl.load(states + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + places, value.to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def _norm(  # type: ignore[no-untyped-def]
        states,
        result,
        weight,
        bias,
        sums,
        out,
        means,
        deviations,
        seed,
        rate,
        factor,
        epsilon,
        width: tl.constexpr,
        BLOCK: tl.constexpr,
        RESIDUAL: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        columns = tl.arange(0, BLOCK)
        inside = columns < width
        places = row * width + columns
        value = tl.load(states + places, mask=inside, other=0.0).to(tl.float32)
        if RESIDUAL:
            value += tl.load(result + places, mask=inside, other=0.0).to(tl.float32) * _kept(seed, places, rate, factor)
            value = value.to(sums.dtype.element_ty)
            tl.store(sums + places, value, mask=inside)
            value = value.to(tl.float32)
        mean = tl.sum(value, 0) / width
        centred = tl.where(inside, value - mean, 0.0)
        deviation = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / width + epsilon)
        tl.store(means + row, mean)
        tl.store(deviations + row, deviation)
        normalised = centred * deviation * tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        normalised += tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + places, normalised.to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def _norm_backward(  # type: ignore[no-untyped-def]
        gradients,
        sums,
        weight,
        means,
        deviations,
        state_gradients,
        result_gradients,
        parts,
        seed,
        rate,
        factor,
        rows,
        width: tl.constexpr,
        BLOCK: tl.constexpr,
        RESIDUAL: tl.constexpr,
    ):
        program, programs = tl.program_id(0), tl.num_programs(0)
        columns = tl.arange(0, BLOCK)
        inside = columns < width
        gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        weight_sum = tl.zeros([BLOCK], tl.float32)
        bias_sum = tl.zeros([BLOCK], tl.float32)
        for row in range(program, rows, programs):
            places = (row + tl.zeros([BLOCK], tl.int64)) * width + columns
            gradient = tl.load(gradients + places, mask=inside, other=0.0).to(tl.float32)
            value = tl.load(sums + places, mask=inside, other=0.0).to(tl.float32)
            deviation = tl.load(deviations + row)
            normalised = tl.where(inside, (value - tl.load(means + row)) * deviation, 0.0)
            weight_sum += gradient * normalised
            bias_sum += gradient
            scaled = gradient * gain
            mean = tl.sum(scaled, 0) / width
            slope = tl.sum(scaled * normalised, 0) / width
            change = (scaled - mean - normalised * slope) * deviation
            tl.store(state_gradients + places, change.to(state_gradients.dtype.element_ty), mask=inside)
            if RESIDUAL:
                change *= _kept(seed, places, rate, factor)
                tl.store(result_gradients + places, change.to(result_gradients.dtype.element_ty), mask=inside)
        tl.store(parts + program * 2 * width + columns, weight_sum, mask=inside)
        tl.store(parts + (program * 2 + 1) * width + columns, bias_sum, mask=inside)


class _DroppedOut(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor, rate: float, factor: Tensor) -> Tensor:
        context.rate, context.factor, context.seed = rate, factor, _draw(values)
        return _drop(values, context.seed, rate, factor)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _drop(gradient, context.seed, context.rate, context.factor), None, None


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, states: Tensor, result: Tensor, rate: float, factor: Tensor) -> Tensor:
        context.rate, context.factor, context.seed = rate, factor, _draw(states)
        states, result = states.contiguous(), result.contiguous()
        out = torch.empty_like(states)
        _add[_grid(out)](states, result, out, context.seed, rate, factor, out.numel(), _BLOCK)
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        dropped = _drop(gradient, context.seed, context.rate, context.factor) if context.rate else gradient
        return gradient, dropped, None, None


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        result: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        rate: float,
        factor: Tensor,
    ) -> Tensor:
        states = states.contiguous()
        rows, width = states.numel() // states.size(-1), states.size(-1)
        residual = result is not None
        result = states if result is None else result.contiguous()
        sums = torch.empty_like(states) if residual else states
        out = torch.empty_like(states)
        means, deviations = (torch.empty(rows, device=states.device) for _ in range(2))
        seed = _draw(states)
        _norm[(rows,)](
            states,
            result,
            weight,
            bias,
            sums,
            out,
            means,
            deviations,
            seed,
            rate,
            factor,
            epsilon,
            width,
            triton.next_power_of_2(width),
            residual,
            num_warps=_warps(width),
        )
        context.save_for_backward(sums, weight, means, deviations, seed, factor)
        context.rate, context.residual = rate, residual
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        sums, weight, means, deviations, seed, factor = context.saved_tensors
        gradient = gradient.contiguous()
        rows, width = sums.numel() // sums.size(-1), sums.size(-1)
        programs = min(rows, _PROGRAMS)
        separate = context.residual and context.rate > 0
        state_gradient = torch.empty_like(sums)
        result_gradient = torch.empty_like(sums) if separate else state_gradient
        parts = torch.empty(programs, 2 * width, device=sums.device)
        _norm_backward[(programs,)](
            gradient,
            sums,
            weight,
            means,
            deviations,
            state_gradient,
            result_gradient,
            parts,
            seed,
            context.rate,
            factor,
            rows,
            width,
            triton.next_power_of_2(width),
            separate,
            num_warps=_warps(width),
        )
        return (
            state_gradient,
            result_gradient if context.residual else None,
            *summed(parts, weight.dtype).chunk(2),
            None,
            None,
            None,
        )


def dropped_out(values: Tensor, rate: float, factor: Tensor | None = None) -> Tensor:
    """Return values of any shape after inverted dropout. Differentiable.

    factor: scalar on the device, by which the rate is multiplied when the kernel runs, so that a recorded graph can be
    repeated with other rates; None: 1.
    """
    result: Tensor = _DroppedOut.apply(values, rate, _one(values) if factor is None else factor)  # type: ignore[no-untyped-call]
    return result


def added(states: Tensor, result: Tensor, rate: float, factor: Tensor | None = None) -> Tensor:
    """Return states + dropout(result), both (…, d). Differentiable. factor: as in `dropped_out`."""
    sums: Tensor = _Added.apply(states, result, rate, _one(states) if factor is None else factor)  # type: ignore[no-untyped-call]
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
    factor = _one(states) if factor is None else factor
    out: Tensor = _Normalised.apply(states, result, weight, bias, epsilon, rate, factor)  # type: ignore[no-untyped-call]
    return out


def _one(like: Tensor) -> Tensor:
    return torch.ones((), device=like.device)


def _draw(like: Tensor) -> Tensor:
    """Draw a seed from the device's default generator, which also works in a CUDA graph."""
    return torch.randint(1 << 62, (1,), dtype=torch.int64, device=like.device)


def _drop(values: Tensor, seed: Tensor, rate: float, factor: Tensor) -> Tensor:
    values = values.contiguous()
    out = torch.empty_like(values)
    _dropout[_grid(out)](values, out, seed, rate, factor, out.numel(), _BLOCK)
    return out


def _grid(out: Tensor) -> tuple[int]:
    return (triton.cdiv(out.numel(), _BLOCK),)


def _warps(width: int) -> int:
    return min(8, max(1, width // 256))
