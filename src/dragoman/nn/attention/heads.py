"""Heads of attention: masks that scale or switch off heads, and the penalty on heads with equal weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

_masks: ContextVar[Mapping[nn.Module, Tensor] | None] = ContextVar("head masks", default=None)


@contextmanager
def masking_heads(masks: Mapping[nn.Module, Tensor]) -> Iterator[None]:
    """Multiply the result of each head by a factor ξ within this context (Michel et al. 2019, equation 2).

    masks: the factors (h,) of each attention module to scale. The result of a head is the
    weighted mean of its values, before the heads are combined. A factor of 0 switches the head off, which equals zeros
    in its columns of W_O. A factor of 1 changes no bit. Gradients flow to masks that require them. The weights that
    `recording` collects are those of the head, whatever its factor. Outer masks of the same module do not apply.
    """
    token = _masks.set({**(_masks.get() or {}), **masks})
    try:
        yield
    finally:
        _masks.reset(token)


def has_masked_heads() -> bool:
    """Return whether heads of any module are masked in this context."""
    return bool(_masks.get())


def apply_head_mask(module: nn.Module, context: Tensor) -> Tensor:
    """Return the results of the heads (N, h, …) of a module, multiplied by its mask if it has one.

    Compiled layers, used only in training, ignore masks.
    """
    masks = None if torch.compiler.is_compiling() else _masks.get()
    if masks is None or (mask := masks.get(module)) is None:
        return context
    return context * mask.to(context.dtype).view(-1, *[1] * (context.dim() - 2))


def head_diversity(weights: Tensor, query_mask: Tensor | None) -> tuple[Tensor, Tensor | float]:
    """Return the sum of ‖AAᵀ − I‖²_F over queries, and the number of queries (deck 002; Lin et al. 2017, equation 8).

    A is (h, S), the attention weights of all heads for one query. weights: (B, h, T, S). query_mask: bool, one value
    per query, False at padding.
    """
    rows = weights.float().transpose(1, 2)  # (B, T, h, S)
    gram = torch.matmul(rows, rows.transpose(2, 3))
    distance = (gram - torch.eye(gram.size(-1), device=gram.device)).square().sum((2, 3))
    if query_mask is None:
        return distance.sum(), float(distance.numel())
    return (distance * query_mask.reshape(distance.shape)).sum(), query_mask.sum()
