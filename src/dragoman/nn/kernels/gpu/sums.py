"""The last stage of sums over rows, whose parts several programs have computed."""

from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs does not include Triton
    triton = None

_COLUMNS = 64
_PARTS = 32

if triton is not None:

    @triton.jit
    def _sum_parts(sums, out, parts, width, PARTS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
        columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        total = tl.zeros([COLUMNS], tl.float32)
        for start in range(0, parts, PARTS):
            rows = start + tl.arange(0, PARTS)
            inside = (rows < parts)[:, None] & (columns < width)[None, :]
            total += tl.sum(tl.load(sums + rows[:, None] * width + columns[None, :], mask=inside, other=0.0), 0)
        tl.store(out + columns, total.to(out.dtype.element_ty), mask=columns < width)


def sum_parts(parts: Tensor, out: Tensor) -> None:
    """Write the sum of the rows of (P, n) float32, rounded once, to out (n,)."""
    count, width = parts.shape
    _sum_parts[(triton.cdiv(width, _COLUMNS),)](parts, out, count, width, _PARTS, _COLUMNS, num_warps=4)
