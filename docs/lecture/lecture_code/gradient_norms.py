"""Norms of gradients at source positions: which states a loss can change (Pascanu et al. 2013)."""

from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.kinds.encoder_decoder import Seq2Seq
from lecture_code.symbol_tasks import Examples, losses


def gradient_norms(model: Seq2Seq, examples: Examples, label: int | None = None) -> Tensor:
    """Return the norm (S,) of the gradient of the loss with respect to the encoder's input at each source position.

    The loss is the sum of −log p(label) over the target, or over one target position `label`. The value is the mean
    over the examples of ‖∂L/∂x_i‖, where x_i is the vector of the token at position i. In a recurrent encoder, only the
    first state reads the first input, so its gradient has passed through all states that the loss depends on.
    """
    recorded: list[Tensor] = []

    def record(module: nn.Module, arguments: Any, vectors: Tensor) -> Tensor:
        recorded.append(vectors.detach().requires_grad_())
        return recorded[-1]

    handle = model.encoder.embedding.register_forward_hook(record)
    try:
        with torch.enable_grad():
            values = losses(model, examples)
            total = values.sum() if label is None else values[:, label].sum()
            (gradient,) = torch.autograd.grad(total, recorded)
    finally:
        handle.remove()
    norms: Tensor = torch.linalg.vector_norm(gradient.double(), dim=2)
    return norms.mean(0)


def factor_per_position(lengths: list[int], norms: list[float]) -> float:
    """Return the factor by which a norm changes per position, from the first to the last of several lengths."""
    return float((norms[-1] / norms[0]) ** (1 / (lengths[-1] - lengths[0])))
