"""Linear layers whose backward pass sums the gradient of the bias, and differentiates ReLU, in one pass over memory.

PyTorch sums the columns of a tall matrix slowly: 3.6 ms of a 54 ms update of a Transformer base on an H200.
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

_COLUMNS = 64
_ROWS = 32
_PROGRAMS = 64
"""Number of programs that share the rows of each block of columns."""

if triton is not None:

    @triton.jit
    def _sum_columns(  # type: ignore[no-untyped-def]
        gradients,
        activations,
        out,
        sums,
        rows,
        width,
        RELU: tl.constexpr,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
    ):
        program, programs = tl.program_id(1), tl.num_programs(1)
        columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        total = tl.zeros([COLUMNS], tl.float32)
        for start in range(program * ROWS, rows, programs * ROWS):
            places = start + tl.arange(0, ROWS)
            inside = (places < rows)[:, None] & (columns < width)[None, :]
            at = places.to(tl.int64)[:, None] * width + columns[None, :]
            gradient = tl.load(gradients + at, mask=inside, other=0.0)
            if RELU:
                activation = tl.load(activations + at, mask=inside, other=0.0)
                gradient = tl.where(activation > 0, gradient, 0.0).to(gradients.dtype.element_ty)
                tl.store(out + at, gradient, mask=inside)
            total += tl.sum(gradient.to(tl.float32), 0)
        tl.store(sums + program * width + columns, total, mask=columns < width)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, states: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        rows = states.reshape(-1, states.size(-1))
        product = torch._addmm_activation if relu else torch.addmm  # cuBLAS adds the bias and computes ReLU
        result = product(bias, rows, weight.t())
        context.relu = relu
        context.save_for_backward(rows, weight, result if relu else None)
        return result.view(*states.shape[:-1], -1)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        rows, weight, result = context.saved_tensors
        shape = (*gradient.shape[:-1], rows.size(-1))
        gradient = gradient.reshape(-1, gradient.size(-1)).contiguous()
        count, width = gradient.shape
        change = torch.empty_like(gradient) if context.relu else gradient
        programs = min(_PROGRAMS, triton.cdiv(count, _ROWS))
        sums = torch.empty(programs, width, device=gradient.device)
        _sum_columns[triton.cdiv(width, _COLUMNS), programs](
            gradient,
            result if context.relu else gradient,
            change,
            sums,
            count,
            width,
            context.relu,
            _ROWS,
            _COLUMNS,
            num_warps=4,
        )
        return (change @ weight).view(shape), change.t() @ rows, summed(sums, weight.dtype), None


def linear(states: Tensor, weight: Tensor, bias: Tensor, relu: bool = False) -> Tensor:
    """Return xWᵀ + b of states (…, m), with weight (n, m) and bias (n,), and optionally its ReLU. Differentiable."""
    result: Tensor = _Linear.apply(states, weight, bias, relu)  # type: ignore[no-untyped-call]
    return result
