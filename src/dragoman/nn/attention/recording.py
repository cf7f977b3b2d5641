"""Recording what attention looks at, without keeping anything on modules."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

Recorded = dict[nn.Module, list[Tensor]]
_recorder: ContextVar[Recorded | None] = ContextVar("attention recorder", default=None)


@contextmanager
def recording() -> Iterator[Recorded]:
    """While open, every attention takes the explicit path and appends its weights, once a call, under its module.

    The weights are (B, heads, T, S), after they are normalised and before dropout. A recurrent decoder makes one call
    a token.
    """
    weights: Recorded = {}
    token = _recorder.set(weights)
    try:
        yield weights
    finally:
        _recorder.reset(token)


def recorder() -> Recorded | None:
    """Where weights go, or None. Compiled layers, which only training runs, are not recorded."""
    return None if torch.compiler.is_compiling() else _recorder.get()


def mean_over_heads(weights: Recorded, attention: nn.Module, rows: int) -> Tensor:
    """What `attention` looked at in all its calls, averaged over its heads: (rows, T, S)."""
    calls = [call.mean(1) for call in weights[attention]]  # (B, K·t, S) each, K rows of a sentence folded into queries
    return torch.cat([call.reshape(rows, -1, call.size(-1)) for call in calls], 1)
