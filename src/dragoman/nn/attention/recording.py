"""Record attention weights without storing anything on modules."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

Recorded = dict[nn.Module, list[Tensor]]
_recorder: ContextVar[Recorded | None] = ContextVar("attention recorder", default=None)


@contextmanager
def recording() -> Iterator[Recorded]:
    """Record attention weights within this context: every attention takes the explicit path and appends its weights.

    There is one entry per call, (B, heads, T, S), after normalisation and before dropout. A recurrent decoder makes one
    call per token.
    """
    weights: Recorded = {}
    token = _recorder.set(weights)
    try:
        yield weights
    finally:
        _recorder.reset(token)


def recorder() -> Recorded | None:
    """Return the active record, or None. Compiled layers, which only training uses, are not recorded."""
    return None if torch.compiler.is_compiling() else _recorder.get()


def mean_over_heads(weights: Recorded, attention: nn.Module, rows: int) -> Tensor:
    """Return the recorded weights of all calls of `attention`, averaged over heads: (rows, T, S)."""
    calls = [call.mean(1) for call in weights[attention]]  # (B, K·t, S) each; a sentence's K rows are in the query axis
    return torch.cat([call.reshape(rows, -1, call.size(-1)) for call in calls], 1)
