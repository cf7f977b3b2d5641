"""Linear layers whose backward pass sums the gradient of the bias, and differentiates ReLU, in one pass over memory.

PyTorch sums the columns of a tall matrix slowly: 3.6 ms of a 54 ms update of a Transformer base on an H200.
"""

from typing import Any

import torch
from torch import Tensor

from dragoman.nn.kernels.backend import kernels


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
        change = torch.empty_like(gradient) if context.relu else gradient
        sums = weight.new_empty(len(weight))
        kernels(gradient.device).sum_rows(gradient, result, change, sums)
        return (change @ weight).view(shape), change.t() @ rows, sums, None


def linear(states: Tensor, weight: Tensor, bias: Tensor, relu: bool = False) -> Tensor:
    """Return xWᵀ + b of states (…, m), with weight (n, m) and bias (n,), and optionally its ReLU. Differentiable."""
    result: Tensor = _Linear.apply(states, weight, bias, relu)  # type: ignore[no-untyped-call]
    return result
