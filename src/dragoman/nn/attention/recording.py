"""Record attention weights without storing them on the modules."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn


class Recorded(dict[nn.Module, list[Tensor]]):
    """The weights of attention modules. differentiable: whether the weights keep their history of operations."""

    differentiable = False


_recorder: ContextVar[Recorded | None] = ContextVar("attention recorder", default=None)


@contextmanager
def recording(differentiable: bool = False) -> Iterator[Recorded]:
    """Record the weights of all attention modules within this context.

    differentiable: the weights keep their history, so that a loss can depend on them.

    There is one entry (B, heads, T, S) per call, after normalisation and before dropout. A recurrent decoder makes one
    call per token. Recording disables fused kernels, which do not return weights.
    """
    weights = Recorded()
    weights.differentiable = differentiable
    token = _recorder.set(weights)
    try:
        yield weights
    finally:
        _recorder.reset(token)


def recorder() -> Recorded | None:
    """Return the active record, or None if there is none. Compiled layers, used only in training, are not recorded."""
    return None if torch.compiler.is_compiling() else _recorder.get()


def record(module: nn.Module, weights: Tensor) -> None:
    """Add the weights of a call of an attention module to the active record, if there is one."""
    if (recorded := recorder()) is not None:
        recorded.setdefault(module, []).append(weights if recorded.differentiable else weights.detach())


def mean_over_heads(weights: Recorded, attention: nn.Module, rows: int) -> Tensor:
    """Return the recorded weights of all calls of `attention`, averaged over heads: (rows, T, S)."""
    calls = [call.mean(1) for call in weights[attention]]  # (B, K·t, S) each, with K rows per sentence
    return torch.cat([call.reshape(rows, -1, call.size(-1)) for call in calls], 1)
