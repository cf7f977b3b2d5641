"""Attention of one new token per hypothesis, over keys and values that are stored at fixed positions.

R = B · K rows: K hypotheses of each of B sentences. C: capacity in output tokens; S: capacity in source tokens.
"""

from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.nn.attention.cache import Keys
from dragoman.nn.attention.soft import SoftAttention


class Positions(NamedTuple):
    """The output position of each sentence.

    current: (B,) int64, the position of the input token of this step. branches: (B, K, C) int64, the index of the cache
    row (0 … K−1) that stores each position of each hypothesis, up to the current position. When a beam is reordered,
    only these indices change; keys and values are not moved. active: (B,) bool. start, left_padding (R,): the current
    positions in the form that a model's position scheme expects. `start` is the last position, and `left_padding` is
    the distance between each row's position and `start`.
    """

    current: Tensor
    branches: Tensor
    active: Tensor
    start: int
    left_padding: Tensor


@dataclass(frozen=True)
class SlotSelfAttention:
    """Self-attention of a decoder layer in slots.

    weight, bias: the concatenated query, key and value projections; bias is None without biases. cache: keys and
    values (B, h, K, C, ·), updated in place.
    """

    attention: SoftAttention
    weight: Tensor
    bias: Tensor | None
    cache: Keys

    @staticmethod
    def of(attention: SoftAttention, slots: int, beam: int, capacity: int) -> "SlotSelfAttention":
        """Build the attention for B slots, with an empty cache."""
        linear = [attention.query, attention.key]
        if not attention.config.tie_keys_and_values:
            linear.append(attention.value)
        weight = torch.cat([each.weight.detach() for each in linear])
        bias = torch.cat([each.bias.detach() for each in linear]) if attention.config.bias else None
        return SlotSelfAttention(attention, weight, bias, _zeros(attention, slots, beam, capacity))

    def __call__(self, states: Tensor, positions: Positions) -> Tensor:
        """Store the new keys and values and attend over the outputs so far: (R, 1, d) → (R, 1, d)."""
        attention, (keys, values) = self.attention, self.cache
        rows, heads = states.size(0), attention.heads
        projected = functional.linear(states[:, 0], self.weight, self.bias)  # (R, h · (d_k + d_k + d_v))
        width = heads * keys.size(4)
        query = projected[:, :width].view(rows, heads, -1)
        new_key = projected[:, width : 2 * width].view(rows, heads, -1)
        new_value = new_key if attention.config.tie_keys_and_values else projected[:, 2 * width :].view(rows, heads, -1)
        if attention.relation is not None:
            start, left_padding = positions.start, positions.left_padding
            query = attention.relation.rotate(query.unsqueeze(2), start, left_padding).squeeze(2)
            new_key = attention.relation.rotate(new_key.unsqueeze(2), start, left_padding).squeeze(2)
        current, branches, active = positions[:3]
        if (kernels := triton_kernels(states.device)) is not None:
            scale = _scale(attention, query)
            context = kernels.self_attention(
                query,
                new_key,
                new_value,
                keys,
                values,
                positions=current,
                branches=branches,
                active=active,
                scale=scale,
            )
        else:
            _store(keys, new_key, current)
            _store(values, new_value, current)
            context = _attend(
                attention.scorer.fold(query), keys.flatten(2, 3), values.flatten(2, 3), _visible(current, branches)
            )
        return _combine(attention, context)


@dataclass(frozen=True)
class SlotCrossAttention:
    """Cross-attention of a decoder layer in slots. memory: keys and values of the sources (B, h, S, ·)."""

    attention: SoftAttention
    memory: Keys

    @staticmethod
    def of(attention: SoftAttention, slots: int, source: int) -> "SlotCrossAttention":
        """Build the attention for B empty slots."""
        return SlotCrossAttention(attention, _zeros(attention, slots, source))

    def __call__(self, states: Tensor, mask: Tensor, active: Tensor) -> Tensor:
        """Attend over the sources: (R, 1, d) → (R, 1, d). mask: (B, S) bool, True at tokens."""
        attention, (keys, values) = self.attention, self.memory
        query = attention.query(states[:, 0]).view(states.size(0), attention.heads, -1)
        if (kernels := triton_kernels(states.device)) is not None:
            context = kernels.cross_attention(query, keys, values, mask, active=active, scale=_scale(attention, query))
        else:
            context = _attend(attention.scorer.fold(query), keys, values, mask[:, None, None])
        return _combine(attention, context)


@lru_cache
def triton_kernels(device: torch.device) -> ModuleType | None:
    """Return this package's module of GPU kernels, or None on a CPU or if Triton does not run."""
    if device.type != "cuda":
        return None
    from dragoman.engines.cuda import kernels  # importing Triton is slow

    return kernels if kernels.can_run_on(device) else None


def _zeros(attention: SoftAttention, slots: int, *shape: int) -> Keys:
    """Return zero keys and values for B slots: (B, h, *shape, ·)."""
    weight, heads = attention.key.weight, attention.heads
    key = attention.key.out_features // heads
    value = key if attention.config.tie_keys_and_values else attention.value.out_features // heads
    return Keys(*(weight.new_zeros(slots, heads, *shape, width) for width in (key, value)))


def _scale(attention: SoftAttention, queries: Tensor) -> float:
    """Return the factor by which a dot-product scorer multiplies queries."""
    return float(attention.scorer.fold(torch.ones(queries.size(-1)))[0])


def _store(cache: Tensor, new: Tensor, current: Tensor) -> None:
    """Write rows (R, h, ·) to the cache (B, h, K, C, ·), at the current position of each sentence."""
    sentences, heads, beam = cache.shape[:3]
    new_entries = new.reshape(sentences, beam, heads, 1, -1).transpose(1, 2)
    cache.scatter_(3, current.view(-1, 1, 1, 1, 1).expand_as(new_entries), new_entries)


def _visible(current: Tensor, branches: Tensor) -> Tensor:
    """Return a mask of the sentence's K · C cache entries that belong to each hypothesis: (B, 1, K, K · C) bool."""
    beam, capacity = branches.shape[1:]
    written = torch.arange(capacity, device=current.device) <= current[:, None]  # (B, C)
    rows = torch.arange(beam, device=current.device)
    visible = (branches[:, :, None] == rows[:, None]) & written[:, None, None]  # (B, K, K, C)
    return visible.flatten(2).unsqueeze(1)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """Attend with queries (R, h, d_k), grouped by sentence, over P keys and values (B, h, P, ·): (R, h, d_v)."""
    sentences, (rows, heads, _) = len(keys), queries.shape
    folded = queries.reshape(sentences, rows // sentences, heads, -1).transpose(1, 2)  # (B, h, K, d_k)
    context = functional.scaled_dot_product_attention(folded, keys, values, attn_mask=visible, scale=1.0)
    return context.transpose(1, 2).reshape(rows, heads, -1)


def _combine(attention: SoftAttention, context: Tensor) -> Tensor:
    """Combine the heads: (R, h, d_v) → (R, 1, d)."""
    if attention.combine == "mean":
        return context.mean(1, keepdim=True)
    concatenated = context.flatten(1).unsqueeze(1)
    return attention.output(concatenated) if attention.combine == "project" else concatenated
