"""The Triton kernels as an implementation of `Kernels`."""

from dragoman.nn.kernels.gpu.attention import attend, differentiate_attention
from dragoman.nn.kernels.gpu.cross_entropy import differentiate_logits
from dragoman.nn.kernels.gpu.linear import sum_rows
from dragoman.nn.kernels.gpu.residual import add, differentiate_norm, drop, normalise
from dragoman.nn.kernels.gpu.rotation import rotate

__all__ = [
    "add",
    "attend",
    "differentiate_attention",
    "differentiate_logits",
    "differentiate_norm",
    "drop",
    "normalise",
    "rotate",
    "sum_rows",
]
