"""Dropout, residual connection and layer normalisation of packed rows in one pass over memory each way.

Random numbers are hashes of a seed and the element's index, so that the backward pass computes them again instead of
reading a mask.
"""

import torch
from torch import Tensor

from dragoman.nn.kernels.gpu.sums import sum_parts
from dragoman.nn.kernels.interface import DropoutDraw, NormInputs, NormResults

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs does not include Triton
    triton = None

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


def drop(values: Tensor, out: Tensor, draw: DropoutDraw) -> None:
    """See `Kernels.drop`."""
    _dropout[_grid(out)](values, out, draw.seed, draw.rate, draw.factor, out.numel(), _BLOCK)


def add(states: Tensor, result: Tensor, out: Tensor, draw: DropoutDraw) -> None:
    """See `Kernels.add`."""
    _add[_grid(out)](states, result, out, draw.seed, draw.rate, draw.factor, out.numel(), _BLOCK)


def normalise(inputs: NormInputs, results: NormResults, epsilon: float, draw: DropoutDraw) -> None:
    """See `Kernels.normalise`."""
    states, result, weight, bias = inputs
    width = states.size(-1)
    _norm[(states.numel() // width,)](
        states,
        states if result is None else result,
        weight,
        bias,
        *results,
        draw.seed,
        draw.rate,
        draw.factor,
        epsilon,
        width,
        triton.next_power_of_2(width),
        result is not None,
        num_warps=_warps(width),
    )


def differentiate_norm(
    gradient: Tensor,
    saved: tuple[Tensor, Tensor, Tensor, Tensor],
    gradients: tuple[Tensor, Tensor | None, Tensor],
    draw: DropoutDraw,
) -> None:
    """See `Kernels.differentiate_norm`."""
    sums, weight, means, deviations = saved
    state_gradient, result_gradient, parameter_gradients = gradients
    rows, width = sums.numel() // sums.size(-1), sums.size(-1)
    programs = min(rows, _PROGRAMS)
    parts = torch.empty(programs, 2 * width, device=sums.device)
    _norm_backward[(programs,)](
        gradient,
        sums,
        weight,
        means,
        deviations,
        state_gradient,
        state_gradient if result_gradient is None else result_gradient,
        parts,
        draw.seed,
        draw.rate,
        draw.factor,
        rows,
        width,
        triton.next_power_of_2(width),
        result_gradient is not None,
        num_warps=_warps(width),
    )
    sum_parts(parts, parameter_gradients.view(-1))


def _grid(out: Tensor) -> tuple[int]:
    return (triton.cdiv(out.numel(), _BLOCK),)


def _warps(width: int) -> int:
    return min(8, max(1, width // 256))
