"""Measures whether a device multiplies matrices in bfloat16 faster than in float32."""

import time

import torch

_MAX_SLOWDOWN = 2.0
"""If small products in bfloat16 take more than this many times as long as in float32, large ones are not measured."""


def bfloat16_speed(device: torch.device) -> float:
    """Return the speed of bfloat16 relative to float32 for a matrix product of the size used in a feed-forward layer.

    On a GPU, nothing is measured: the result is infinity if the GPU supports bfloat16, and 0 if it would emulate it.
    """
    if device.type == "cuda":
        return float("inf") if torch.cuda.is_bf16_supported(including_emulation=False) else 0.0
    for rows, rounds in ((128, 3), (1024, 12)):
        narrow, wide = _product_seconds(rows, rounds, torch.bfloat16, torch.float32)
        if narrow > _MAX_SLOWDOWN * wide:
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
