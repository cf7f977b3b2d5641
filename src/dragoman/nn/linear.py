"""`Linear`: torch's linear layer, in training on a GPU with the kernels of this project."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.kernels.choice import uses_kernels


class Linear(nn.Linear):
    """xWᵀ + b."""

    def forward(self, states: Tensor) -> Tensor:
        """Apply the layer: (…, m) → (…, n)."""
        return product(states, self.weight, self.bias)

    def with_relu(self, states: Tensor) -> Tensor:
        """Return max(0, xWᵀ + b): (…, m) → (…, n)."""
        return product(states, self.weight, self.bias, relu=True)


def product(states: Tensor, weight: Tensor, bias: Tensor | None, relu: bool = False) -> Tensor:
    """Return xWᵀ + b of states (…, m), or its ReLU. weight: (n, m); bias: (n,) or None."""
    if bias is not None and uses_kernels(states):
        from dragoman.nn.kernels.linear import linear

        return linear(states, weight, bias, relu)
    result = functional.linear(states, weight, bias)
    return functional.relu(result) if relu else result


def joint_product(states: Tensor, *layers: nn.Linear) -> Tensor:
    """Return the outputs of several layers of the same input side by side, computed in one product."""
    weight = torch.cat(tuple(each.weight for each in layers))
    bias = None if layers[0].bias is None else torch.cat(tuple(each.bias for each in layers))
    return product(states, weight, bias)
