"""Choice of PyTorch's fused attention kernels on a GPU: only kernels that are fast when batch shapes keep changing."""

import time
from collections.abc import Callable
from functools import cache
from statistics import median

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_HEADS, _WIDTH = 8, 64
_SHAPES = ((4, 17), (4, 23), (4, 29))
"""Sentences and tokens of the measured shapes, each used once; the first one loads the kernel's library."""

_TOLERATED = 3.0
"""cuDNN's kernel is turned off if a new shape takes this many times as long as with the memory-efficient kernel."""

Measure = Callable[[SDPBackend], float | None]
"""Seconds that a kernel takes for a new shape; None if it cannot run on this GPU."""


@cache
def keep_fast_attention_kernels(device: torch.device) -> bool:
    """Turn cuDNN's attention off for this process if it is slow on new shapes; returns whether it was turned off.

    PyTorch prefers cuDNN's kernel on Hopper and later GPUs. The kernel builds a plan for each new shape, which was
    measured to take 120 to 190 ms, and nearly every batch of sentences has a new shape. The speed is measured on the
    device rather than looked up; this takes as long as a few plans, once per process. Nothing is done on a CPU, or if
    cuDNN's attention is already off (`torch.backends.cuda.enable_cudnn_sdp`).
    """
    if device.type != "cuda" or not torch.backends.cuda.cudnn_sdp_enabled():  # type: ignore[no-untyped-call]
        return False
    slow = cudnn_is_slow(lambda kernel: _new_shape_seconds(kernel, device))
    if slow:
        torch.backends.cuda.enable_cudnn_sdp(False)
    return slow


def cudnn_is_slow(measure: Measure) -> bool:
    """Return whether cuDNN's attention is several times as slow on a new shape as the memory-efficient kernel."""
    steady = measure(SDPBackend.EFFICIENT_ATTENTION)
    planned = None if steady is None else measure(SDPBackend.CUDNN_ATTENTION)
    return steady is not None and planned is not None and planned > _TOLERATED * steady


def _new_shape_seconds(kernel: SDPBackend, device: torch.device) -> float | None:
    seconds = []
    for sentences, tokens in _SHAPES:
        states = torch.zeros(sentences, _HEADS, tokens, _WIDTH, device=device, dtype=torch.float16)
        torch.cuda.synchronize(device)
        start = time.perf_counter()
        try:
            with torch.no_grad(), sdpa_kernel(kernel):
                scaled_dot_product_attention(states, states, states, is_causal=True)
        except RuntimeError:
            return None
        torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:])
