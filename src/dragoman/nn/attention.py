"""Multi-head scaled dot-product attention, with an explicit path that yields its weights and a fused fast path."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import Mask

_recorder: ContextVar[dict[nn.Module, list[Tensor]] | None] = ContextVar("attention recorder", default=None)

# On a CPU the fused kernel's bfloat16 backward is slow for short sentences; from here on the explicit path's B·h·T·S
# weights cost more memory than it saves time. What was measured, and what it leaves open, is in docs/EXPERIMENTS.md.
_FUSED_FROM_KEYS = 256


@contextmanager
def recording() -> Iterator[dict[nn.Module, list[Tensor]]]:
    """While open, every attention takes the explicit path and appends its weights, once a call, under its module.

    The weights are (B, heads, T, S), after the softmax and before dropout.
    """
    weights: dict[nn.Module, list[Tensor]] = {}
    token = _recorder.set(weights)
    try:
        yield weights
    finally:
        _recorder.reset(token)


class MultiHeadAttention(nn.Module):
    """Concatenated heads with an output projection (Vaswani et al. 2017, section 3.2.2).

    width: d; heads: h, must divide d, each of width d/h; dropout: rate on the weights after the softmax.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide a model width of {width}")
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def keys_and_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Project states (B, S, d) to keys and values (B, h, S, d/h), which a decoder may cache."""
        return self._split(self.key(states)), self._split(self.value(states))

    def forward(self, states: Tensor, keys: Tensor, values: Tensor, mask: Mask | None) -> Tensor:
        """Attend from states (B·K, T, d) over keys and values (B, h, S, d/h); the result is (B·K, T, d).

        The K rows of a sentence share its keys: they are folded into the query axis, so keys are never repeated.
        """
        rows, length, width = states.shape
        sentences = keys.size(0)
        queries = self._split(self.query(states).view(sentences, -1, width))
        context = self._attend(queries, keys, values, mask)
        return self.output(context.transpose(1, 2).reshape(rows, length, width))  # type: ignore[no-any-return]

    def _split(self, states: Tensor) -> Tensor:
        sentences, length, width = states.shape
        return states.view(sentences, length, self.heads, width // self.heads).transpose(1, 2)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None) -> Tensor:
        recorder = _recorder.get()
        if recorder is None and (queries.device.type != "cpu" or keys.size(2) >= _FUSED_FROM_KEYS):
            return functional.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=None if mask is None else mask.keep,
                dropout_p=self.dropout.rate if self.training else 0.0,
            )
        weights = attention_weights(queries, keys, mask)
        if recorder is not None:
            recorder.setdefault(self, []).append(weights.detach())
        return torch.matmul(self.dropout(weights), values)


def attention_weights(queries: Tensor, keys: Tensor, mask: Mask | None) -> Tensor:
    """softmax(QKᵀ/√d_k): queries (B, h, T, d_k), keys (B, h, S, d_k) → (B, h, T, S), zero where masked."""
    # Scaling the queries instead of the scores touches fewer elements for every S > d_k, and costs no extra pass.
    scores = torch.matmul(queries * (1 / sqrt(queries.size(-1))), keys.transpose(2, 3))
    if mask is None:
        return torch.softmax(scores, -1)
    weights = torch.softmax(scores + mask.bias.to(scores.dtype), -1)
    if mask.has_empty_rows:
        weights = weights.masked_fill(~mask.keep.any(-1, keepdim=True), 0.0)
    return weights
