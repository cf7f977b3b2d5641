"""Triton kernels of a decoding step: attention of one token per hypothesis, and the logarithm of a softmax's divisor.

PyTorch's fused attention has kernels for long queries. With one query per head they leave most of a GPU idle: on an
H200 they took 2.5 of the 3.6 ms of a step with 2,048 sentences. These kernels read each key and value once, and only
those that are visible. Without Triton, `engines.cuda.attention` computes the same with PyTorch.
"""

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs comes without Triton
    triton = None

AVAILABLE = triton is not None

_PLACES = 16
"""Keys that one program compares at a time."""

_ENTRIES = 4096
"""Logits that one program reads at a time."""

if AVAILABLE:

    @triton.jit
    def _self_attention(  # type: ignore[no-untyped-def]
        queries,
        new_keys,
        new_values,
        keys,
        values,
        positions,
        branches,
        active,
        out,
        scale,
        query_stride,
        key_stride,
        value_stride,
        heads: tl.constexpr,
        beam: tl.constexpr,
        capacity: tl.constexpr,
        key_width: tl.constexpr,
        value_width: tl.constexpr,
        KEY: tl.constexpr,
        VALUE: tl.constexpr,
        PLACES: tl.constexpr,
    ):
        row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
        sentence, hypothesis = row // beam, row % beam
        k, v = tl.arange(0, KEY), tl.arange(0, VALUE)
        inside_k, inside_v = k < key_width, v < value_width
        position = tl.load(positions + sentence)
        query = tl.load(queries + row * query_stride + head * key_width + k, mask=inside_k, other=0.0).to(tl.float32)
        new_key = tl.load(new_keys + row * key_stride + head * key_width + k, mask=inside_k, other=0.0)
        new_value = tl.load(new_values + row * value_stride + head * value_width + v, mask=inside_v, other=0.0)
        query *= scale
        first = (sentence * heads + head) * beam * capacity  # the sentence's first cache entry for this head
        own = first + hypothesis * capacity + position
        tl.store(keys + own * key_width + k, new_key, mask=inside_k)
        tl.store(values + own * value_width + v, new_value, mask=inside_v)
        # softmax over the new token, then over the preceding ones, in one pass (Milakov & Gimelshein 2018)
        largest = tl.sum(query * new_key.to(tl.float32), axis=0)
        total = largest * 0.0 + 1.0
        sums = new_value.to(tl.float32)
        last = tl.where(tl.load(active + sentence) != 0, position, 0)
        for start in range(0, last, PLACES):
            places = start + tl.arange(0, PLACES)
            held = places < position
            if beam == 1:
                at = first + places
            else:
                branch = tl.load(branches + row * capacity + places, mask=held, other=0)
                at = first + branch * capacity + places
            some = tl.load(
                keys + at[:, None] * key_width + k[None, :], mask=held[:, None] & inside_k[None, :], other=0.0
            )
            scores = tl.sum(some.to(tl.float32) * query[None, :], axis=1)
            scores = tl.where(held, scores, float("-inf"))
            above = tl.maximum(largest, tl.max(scores, axis=0))
            weights = tl.exp(scores - above)
            shrink = tl.exp(largest - above)
            there = held[:, None] & inside_v[None, :]
            some = tl.load(values + at[:, None] * value_width + v[None, :], mask=there, other=0.0)
            sums = sums * shrink + tl.sum(some.to(tl.float32) * weights[:, None], axis=0)
            total = total * shrink + tl.sum(weights, axis=0)
            largest = above
        result = (sums / total).to(out.dtype.element_ty)
        tl.store(out + (row * heads + head) * value_width + v, result, mask=inside_v)

    @triton.jit
    def _cross_attention(  # type: ignore[no-untyped-def]
        queries,
        keys,
        values,
        mask,
        active,
        out,
        scale,
        query_stride,
        heads: tl.constexpr,
        beam: tl.constexpr,
        source: tl.constexpr,
        key_width: tl.constexpr,
        value_width: tl.constexpr,
        KEY: tl.constexpr,
        VALUE: tl.constexpr,
        PLACES: tl.constexpr,
    ):
        row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
        sentence = row // beam
        k, v = tl.arange(0, KEY), tl.arange(0, VALUE)
        inside_k, inside_v = k < key_width, v < value_width
        query = tl.load(queries + row * query_stride + head * key_width + k, mask=inside_k, other=0.0).to(tl.float32)
        query *= scale
        first = (sentence * heads + head) * source
        largest = tl.sum(query, axis=0) * 0.0 - 1e30
        total = largest * 0.0
        sums = tl.zeros([VALUE], dtype=tl.float32)
        last = tl.where(tl.load(active + sentence) != 0, source, 0)
        for start in range(0, last, PLACES):
            places = start + tl.arange(0, PLACES)
            held = (places < source) & (tl.load(mask + sentence * source + places, mask=places < source, other=0) != 0)
            at = first + places
            some = tl.load(
                keys + at[:, None] * key_width + k[None, :], mask=held[:, None] & inside_k[None, :], other=0.0
            )
            scores = tl.sum(some.to(tl.float32) * query[None, :], axis=1)
            scores = tl.where(held, scores, float("-inf"))
            above = tl.maximum(largest, tl.max(scores, axis=0))
            weights = tl.exp(scores - above)
            shrink = tl.exp(largest - above)
            there = held[:, None] & inside_v[None, :]
            some = tl.load(values + at[:, None] * value_width + v[None, :], mask=there, other=0.0)
            sums = sums * shrink + tl.sum(some.to(tl.float32) * weights[:, None], axis=0)
            total = total * shrink + tl.sum(weights, axis=0)
            largest = above
        result = (sums / tl.where(total > 0, total, 1.0)).to(out.dtype.element_ty)
        tl.store(out + (row * heads + head) * value_width + v, result, mask=inside_v)

    @triton.jit
    def _logsumexp(logits, out, size, ENTRIES: tl.constexpr):  # type: ignore[no-untyped-def]
        row = tl.program_id(0).to(tl.int64)
        largest = tl.full([ENTRIES], float("-inf"), tl.float32)
        total = tl.zeros([ENTRIES], tl.float32)
        for start in range(0, size, ENTRIES):
            entries = start + tl.arange(0, ENTRIES)
            some = tl.load(logits + row * size + entries, mask=entries < size, other=float("-inf"))
            above = tl.maximum(largest, some)
            finite = tl.where(above == float("-inf"), 0.0, above)
            total = total * tl.exp(largest - finite) + tl.exp(some - finite)
            largest = above
        top = tl.max(largest, axis=0)
        result = tl.log(tl.sum(total * tl.exp(largest - top), axis=0)) + top
        tl.store(out + row, result)


def self_attention(
    queries: Tensor,
    new_keys: Tensor,
    new_values: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    branches: Tensor,
    active: Tensor,
    scale: float,
) -> Tensor:
    """Store the new key and value of each hypothesis, and attend over its tokens so far: (R, h, d_v).

    queries, new_keys (R, h, d_k), new_values (R, h, d_v): rows may be parts of a wider tensor. keys, values: (B, h, K,
    C, ·), filled before `positions` (B,) int64; branches: (B, K, C) int64, the row of the sentence that stores each
    position. Results of sentences that are not active (B,) bool are undefined.
    """
    rows, heads, key_width = queries.shape
    value_width, beam, capacity = values.size(4), keys.size(2), keys.size(3)
    out = torch.empty(rows, heads, value_width, dtype=queries.dtype, device=queries.device)
    _self_attention[rows, heads](
        queries,
        new_keys,
        new_values,
        keys,
        values,
        positions,
        branches,
        active,
        out,
        scale,
        queries.stride(0),
        new_keys.stride(0),
        new_values.stride(0),
        heads,
        beam,
        capacity,
        key_width,
        value_width,
        triton.next_power_of_2(key_width),
        triton.next_power_of_2(value_width),
        _PLACES,
        num_warps=1,
    )
    return out


def cross_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, active: Tensor, scale: float
) -> Tensor:
    """Attend over each sentence's source: (R, h, d_v).

    queries: (R, h, d_k); keys, values: (B, h, S, ·); mask: (B, S) bool, True at tokens; active as in `self_attention`.
    """
    rows, heads, key_width = queries.shape
    value_width, source = values.size(3), keys.size(2)
    out = torch.empty(rows, heads, value_width, dtype=queries.dtype, device=queries.device)
    _cross_attention[rows, heads](
        queries,
        keys,
        values,
        mask,
        active,
        out,
        scale,
        queries.stride(0),
        heads,
        rows // len(keys),
        source,
        key_width,
        value_width,
        triton.next_power_of_2(key_width),
        triton.next_power_of_2(value_width),
        _PLACES,
        num_warps=1,
    )
    return out


def logsumexp(logits: Tensor) -> Tensor:
    """Return ln Σ exp of each row of logits (R, V), float32 and contiguous: (R, 1)."""
    out = torch.empty(len(logits), 1, device=logits.device)
    _logsumexp[(len(logits),)](logits, out, logits.size(1), _ENTRIES, num_warps=8)
    return out


def run_on(device: torch.device) -> bool:
    """Whether these kernels run on a GPU: Triton needs a C compiler and a supported GPU. Runs one kernel as a test."""
    if not AVAILABLE:
        return False
    try:
        logits = torch.randn(2, 5, device=device)
        return torch.allclose(logsumexp(logits), logits.logsumexp(1, keepdim=True), atol=1e-5)
    except Exception:  # Triton, the compiler and the driver raise many kinds
        return False
