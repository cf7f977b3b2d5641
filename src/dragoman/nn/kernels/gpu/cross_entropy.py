"""The gradient of the cross-entropy with respect to logits, computed in their place."""

from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs does not include Triton
    triton = None

_BLOCK = 4096
"""Number of logits that one program reads at a time."""

if triton is not None:

    @triton.jit
    def _differentiate(  # type: ignore[no-untyped-def]
        logits, labels, kept, losses, label_logits, size, smoothing, BLOCK: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64)
        logits += row * size
        label = tl.load(labels + row)
        keep = tl.load(kept + row)
        label_logit = tl.load(logits + label).to(tl.float32)
        largest = tl.full([BLOCK], -1e30, tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        for start in range(0, size, BLOCK):
            places = start + tl.arange(0, BLOCK)
            block = tl.load(logits + places, mask=places < size, other=-1e30).to(tl.float32)
            new_largest = tl.maximum(largest, block)
            total = total * tl.exp(largest - new_largest) + tl.exp(block - new_largest)
            largest = new_largest
        top = tl.max(largest, 0)
        total = tl.where(largest > -1e29, total, 0.0)
        log_total = tl.log(tl.sum(total * tl.exp(largest - top), 0)) + top
        tl.store(losses + row, (log_total - label_logit) * keep)
        tl.store(label_logits + row, label_logit * keep)
        for start in range(0, size, BLOCK):
            places = start + tl.arange(0, BLOCK)
            block = tl.load(logits + places, mask=places < size, other=0.0).to(tl.float32)
            gradient = tl.exp(block - log_total) - tl.where(places == label, 1.0 - smoothing, 0.0)
            tl.store(logits + places, (gradient * keep).to(logits.dtype.element_ty), mask=places < size)


def differentiate_logits(
    logits: Tensor, labels: Tensor, kept: Tensor, losses: tuple[Tensor, Tensor], smoothing: float
) -> None:
    """See `Kernels.differentiate_logits`."""
    rows, size = logits.shape
    _differentiate[(rows,)](logits, labels, kept, *losses, size, smoothing, _BLOCK, num_warps=8)
