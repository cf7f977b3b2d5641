"""The sum of the rows of a gradient."""

import torch
from torch import Tensor

from dragoman.nn.kernels.gpu.sums import sum_parts

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


def sum_rows(gradient: Tensor, activations: Tensor | None, change: Tensor, sums: Tensor) -> None:
    """See `Kernels.sum_rows`."""
    count, width = gradient.shape
    programs = min(_PROGRAMS, triton.cdiv(count, _ROWS))
    parts = torch.empty(programs, width, device=gradient.device)
    _sum_columns[triton.cdiv(width, _COLUMNS), programs](
        gradient,
        gradient if activations is None else activations,
        change,
        parts,
        count,
        width,
        activations is not None,
        _ROWS,
        _COLUMNS,
        num_warps=4,
    )
    sum_parts(parts, sums)
