"""Which of PyTorch's fused attention kernels a GPU uses: those that are fast on batches of ever new shapes."""

import time
from collections.abc import Callable
from functools import cache
from statistics import median

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_HEADS, _WIDTH = 8, 64
_SHAPES = ((4, 17), (4, 23), (4, 29))
"""Sentences and tokens of the shapes that are tried, each once; the first one loads the kernel's library."""

_TOLERATED = 3.0
"""cuDNN's kernel stays unless a new shape costs this many times what it costs the memory-efficient kernel."""

Measure = Callable[[SDPBackend], float | None]
"""Seconds that a kernel takes for a shape it has not met before; None if it cannot run on this GPU."""


@cache
def keep_fast_attention_kernels(device: torch.device) -> bool:
    """Turn cuDNN's attention off for this process if it is slow on new shapes; whether it was turned off.

    PyTorch prefers cuDNN's kernel on Hopper and later GPUs. It builds a plan for each shape that it meets for the first
    time, which was measured to take 120 to 190 ms, and batches of sentences have a new shape nearly every time. The
    choice is measured on the device, not looked up: it takes a few plans' time, once per process. On a CPU nothing is
    done, nor if cuDNN's attention is off already (`torch.backends.cuda.enable_cudnn_sdp`).
    """
    if device.type != "cuda" or not torch.backends.cuda.cudnn_sdp_enabled():  # type: ignore[no-untyped-call]
        return False
    slow = cudnn_is_slow(lambda kernel: _new_shape_seconds(kernel, device))
    if slow:
        torch.backends.cuda.enable_cudnn_sdp(False)
    return slow


def cudnn_is_slow(measure: Measure) -> bool:
    """Whether cuDNN's attention takes several times as long on a new shape as the memory-efficient kernel."""
    steady = measure(SDPBackend.EFFICIENT_ATTENTION)
    planned = None if steady is None else measure(SDPBackend.CUDNN_ATTENTION)
    return steady is not None and planned is not None and planned > _TOLERATED * steady


def _new_shape_seconds(kernel: SDPBackend, device: torch.device) -> float | None:
    seconds = []
    for sentences, tokens in _SHAPES:
        states = torch.zeros(sentences, _HEADS, tokens, _WIDTH, device=device, dtype=torch.float16)
        torch.cuda.synchronize(device)
        begin = time.perf_counter()
        try:
            with torch.no_grad(), sdpa_kernel(kernel):
                scaled_dot_product_attention(states, states, states, is_causal=True)
        except RuntimeError:
            return None
        torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - begin)
    return median(seconds[1:])
