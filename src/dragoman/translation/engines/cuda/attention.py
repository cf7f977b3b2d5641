"""Attention of one new token per hypothesis, over keys and values that are stored at fixed places.

R = B · K rows: K hypotheses of each of B sentences. C: places for output tokens; S: for source tokens.
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
    """Where each sentence is in its own output.

    places: (B,) int64, the place of the token that is read. branches: (B, K, C) int64, which of the sentence's K rows
    of the cache holds each place of each hypothesis, the one that is read included: a beam that is reordered changes
    these numbers, and keys and values stay where they are. active: (B,) bool. start, left_padding (R,): the same as
    positions of a model's tokens, the last position and how many places each row is before it.
    """

    places: Tensor
    branches: Tensor
    active: Tensor
    start: int
    left_padding: Tensor


@dataclass(frozen=True)
class SlotSelfAttention:
    """A decoder's self-attention in slots. weight, bias: those of queries, keys and values, concatenated.

    cache: keys and values (B, h, K, C, ·), written in place.
    """

    attention: SoftAttention
    weight: Tensor
    bias: Tensor
    cache: Keys

    @staticmethod
    def of(attention: SoftAttention, slots: int, beam: int, capacity: int) -> "SlotSelfAttention":
        """For B slots, with an empty cache."""
        linear = [attention.query, attention.key]
        if not attention.config.tie_keys_and_values:
            linear.append(attention.value)
        weight = torch.cat([each.weight.detach() for each in linear])
        bias = torch.cat([each.bias.detach() for each in linear])
        return SlotSelfAttention(attention, weight, bias, _zeros(attention, slots, beam, capacity))

    def __call__(self, states: Tensor, positions: Positions) -> Tensor:
        """(R, 1, d) → (R, 1, d)."""
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
        places, branches, active = positions[:3]
        if (kernels := triton_kernels(states.device)) is not None:
            scale = _scale(attention, query)
            context = kernels.self_attention(query, new_key, new_value, keys, values, places, branches, active, scale)
        else:
            _store(keys, new_key, places)
            _store(values, new_value, places)
            context = _attend(
                attention.scorer.fold(query), keys.flatten(2, 3), values.flatten(2, 3), _visible(places, branches)
            )
        return _combine(attention, context)


@dataclass(frozen=True)
class SlotCrossAttention:
    """Attention over the source in slots. memory: keys and values (B, h, S, ·)."""

    attention: SoftAttention
    memory: Keys

    @staticmethod
    def of(attention: SoftAttention, slots: int, source: int) -> "SlotCrossAttention":
        """For B slots, without sentences."""
        return SlotCrossAttention(attention, _zeros(attention, slots, source))

    def __call__(self, states: Tensor, mask: Tensor, active: Tensor) -> Tensor:
        """(R, 1, d) → (R, 1, d). mask: (B, S) bool, True at tokens."""
        attention, (keys, values) = self.attention, self.memory
        query = attention.query(states[:, 0]).view(states.size(0), attention.heads, -1)
        if (kernels := triton_kernels(states.device)) is not None:
            context = kernels.cross_attention(query, keys, values, mask, active, _scale(attention, query))
        else:
            context = _attend(attention.scorer.fold(query), keys, values, mask[:, None, None])
        return _combine(attention, context)


@lru_cache
def triton_kernels(device: torch.device) -> ModuleType | None:
    """The module of kernels that this package brings for GPUs; None on a CPU, and where Triton does not run."""
    if device.type != "cuda":
        return None
    from dragoman.translation.engines.cuda import kernels  # importing Triton takes longer than all else

    return kernels if kernels.run_on(device) else None


def _zeros(attention: SoftAttention, slots: int, *places: int) -> Keys:
    """Of B slots: (B, h, *places, ·)."""
    weight, heads = attention.key.weight, attention.heads
    key = attention.key.out_features // heads
    value = key if attention.config.tie_keys_and_values else attention.value.out_features // heads
    return Keys(*(weight.new_zeros(slots, heads, *places, width) for width in (key, value)))


def _scale(attention: SoftAttention, queries: Tensor) -> float:
    """What a scorer that compares by dot products multiplies queries with."""
    return float(attention.scorer.fold(torch.ones(queries.size(-1)))[0])


def _store(held: Tensor, new: Tensor, places: Tensor) -> None:
    """Put rows (R, h, ·) at their sentences' places of (B, h, K, C, ·)."""
    sentences, heads, beam = held.shape[:3]
    column = new.reshape(sentences, beam, heads, 1, -1).transpose(1, 2)
    held.scatter_(3, places.view(-1, 1, 1, 1, 1).expand_as(column), column)


def _visible(places: Tensor, branches: Tensor) -> Tensor:
    """(B, 1, K, K · C) bool: which of its sentence's K · C places each hypothesis holds, up to the one that is read."""
    beam, capacity = branches.shape[1:]
    read = torch.arange(capacity, device=places.device) <= places[:, None]  # (B, C)
    rows = torch.arange(beam, device=places.device)
    held = (branches[:, :, None] == rows[:, None]) & read[:, None, None]  # (B, K, K, C)
    return held.flatten(2).unsqueeze(1)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """Queries (R, h, d_k), folded by sentence, over (B, h, P, ·) places: (R, h, d_v)."""
    sentences, (rows, heads, _) = len(keys), queries.shape
    folded = queries.reshape(sentences, rows // sentences, heads, -1).transpose(1, 2)  # (B, h, K, d_k)
    context = functional.scaled_dot_product_attention(folded, keys, values, attn_mask=visible, scale=1.0)
    return context.transpose(1, 2).reshape(rows, heads, -1)


def _combine(attention: SoftAttention, context: Tensor) -> Tensor:
    """(R, h, d_v) → (R, 1, d)."""
    if attention.combine == "mean":
        return context.mean(1, keepdim=True)
    together = context.flatten(1).unsqueeze(1)
    return attention.output(together) if attention.combine == "project" else together
