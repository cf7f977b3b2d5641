"""Measurements of kernels on the device: slow fused attention, which is turned off, and the speed of bfloat16."""

import time
from collections.abc import Callable
from functools import cache
from statistics import median

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_HEADS, _HEAD_SIZE = 8, 64
_SHAPES = ((4, 17), (4, 23), (4, 29))
"""Batch size and sequence length of the measured shapes. Each is used once; the first one also loads the kernel."""

_MAX_SLOWDOWN = 3.0
"""cuDNN's kernel is turned off if a new shape takes more than this many times as long as with the memory-efficient one.
"""

Measure = Callable[[SDPBackend], float | None]
"""Returns the seconds that a kernel takes for a new shape, or None if it cannot run on this GPU."""


@cache
def keep_fast_attention_kernels(device: torch.device) -> bool:
    """Turn off cuDNN's attention in this process if it is slow on new shapes, and return whether it was turned off.

    PyTorch prefers cuDNN's kernel on Hopper and later GPUs. This kernel builds a plan for each new shape, which was
    measured to take 120 to 190 ms, and nearly every batch of sentences has a new shape. The speed is measured on the
    device, once per process, which takes as long as building a few plans. On a CPU, or if cuDNN's attention is already
    off (`torch.backends.cuda.enable_cudnn_sdp`), this function does nothing.
    """
    if device.type != "cuda" or not torch.backends.cuda.cudnn_sdp_enabled():  # type: ignore[no-untyped-call]
        return False
    slow = cudnn_is_slow(lambda kernel: _new_shape_seconds(kernel, device))
    if slow:
        torch.backends.cuda.enable_cudnn_sdp(False)
    return slow


def cudnn_is_slow(measure: Measure) -> bool:
    """Return whether cuDNN's attention is several times as slow on a new shape as the memory-efficient kernel."""
    efficient = measure(SDPBackend.EFFICIENT_ATTENTION)
    cudnn = None if efficient is None else measure(SDPBackend.CUDNN_ATTENTION)
    return efficient is not None and cudnn is not None and cudnn > _MAX_SLOWDOWN * efficient


def _new_shape_seconds(kernel: SDPBackend, device: torch.device) -> float | None:
    seconds = []
    for batch_size, length in _SHAPES:
        try:
            states = torch.zeros(batch_size, _HEADS, length, _HEAD_SIZE, device=device, dtype=torch.float16)
            torch.cuda.synchronize(device)
            start = time.perf_counter()
            with torch.no_grad(), sdpa_kernel(kernel):
                scaled_dot_product_attention(states, states, states, is_causal=True)
            torch.cuda.synchronize(device)
        except RuntimeError:  # the kernel does not exist for this GPU, or its memory is full
            return None
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:])


_BFLOAT16_CAPABILITY = (8, 0)
"""The lowest compute capability of NVIDIA's GPUs with bfloat16: Ampere."""

_MAX_BFLOAT16_SLOWDOWN = 2.0
"""If small products in bfloat16 take more than this many times as long as in float32, large ones are not measured."""


def bfloat16_speed(device: torch.device) -> float:
    """Return the speed of bfloat16 relative to float32 for a matrix product of the size used in a feed-forward layer.

    On a GPU, nothing is measured: the result is infinity if this GPU supports bfloat16, and 0 if it would emulate it.
    """
    if device.type == "cuda":
        # torch.cuda.is_bf16_supported answers for the current GPU, which may be another one
        supported = torch.version.hip is not None or torch.cuda.get_device_capability(device) >= _BFLOAT16_CAPABILITY
        return float("inf") if supported else 0.0
    for rows, rounds in ((128, 3), (1024, 12)):
        narrow, wide = _product_seconds(rows, rounds, torch.bfloat16, torch.float32)
        if narrow > _MAX_BFLOAT16_SLOWDOWN * wide:
            break
    return wide / narrow


def _product_seconds(rows: int, rounds: int, *dtypes: torch.dtype) -> list[float]:
    """Return the shortest time (seconds) of several products for each dtype.

    The dtypes are measured alternately, so that other load on the machine affects all of them.
    """
    factors = [(torch.ones(rows, 512, dtype=dtype), torch.ones(512, 1024, dtype=dtype)) for dtype in dtypes]
    seconds = [float("inf")] * len(dtypes)
    for _ in range(rounds):
        for index, (states, weight) in enumerate(factors):
            start = time.perf_counter()
            states @ weight
            seconds[index] = min(seconds[index], time.perf_counter() - start)
    return seconds
