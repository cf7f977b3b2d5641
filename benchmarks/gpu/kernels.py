"""PyTorch's attention kernels on new and repeated shapes: forward and backward pass, ms per call."""

import random
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

HEADS, WIDTH, TOKENS, SHAPES = 8, 64, 25_000, 40
KERNELS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def milliseconds(kernel: SDPBackend, masked: bool, shapes: list[tuple[int, int]]) -> float:
    """Return the mean time per call over the shapes."""
    start = time.perf_counter()
    for sentences, length in shapes:
        states = torch.randn(sentences, HEADS, length, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        mask = torch.arange(length, device="cuda").expand(sentences, 1, 1, length) < length - 1 if masked else None
        with sdpa_kernel(kernel):
            result = scaled_dot_product_attention(states, states, states, attn_mask=mask, is_causal=not masked)
        result.sum().backward()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(shapes) * 1e3


def kernels() -> None:
    """Print two columns per kernel and mask."""
    random.seed(1)
    shapes = [(TOKENS // length, length) for length in random.sample(range(10, 60), SHAPES)]
    for name, kernel in KERNELS.items():
        for masked in (False, True):
            what = f"KERNEL {name:9} {'mask' if masked else 'causal':6}"
            try:
                milliseconds(kernel, masked, shapes[:1])
                first, again = (milliseconds(kernel, masked, shapes) for _ in range(2))
                print(f"{what} first {first:7.2f} ms, again {again:6.2f} ms", flush=True)
            except RuntimeError as error:
                print(f"{what} not available: {str(error).splitlines()[0][:80]}", flush=True)
