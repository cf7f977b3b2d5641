"""Triton kernels of a decoding step: attention with one query per hypothesis, and log-sum-exp.

PyTorch's fused attention kernels are made for many queries. With one query per head, they leave most of a GPU idle: on
an H200, they took 2.5 ms of a 3.6 ms step with 2,048 sentences. The kernels in this module read each visible key and
value once, and no others. Without Triton, `engines.cuda.attention` computes the same results with PyTorch.
"""

from subprocess import CalledProcessError

import torch
from torch import Tensor

from dragoman.base.log import warn
from dragoman.base.machine.memory import is_out_of_memory

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs does not include Triton
    triton = None

AVAILABLE = triton is not None

_BLOCK_KEYS = 16
"""Number of keys that one program processes at a time."""

_BLOCK_LOGITS = 4096
"""Number of logits that one program reads at a time."""

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
        KEY_BLOCK: tl.constexpr,
        VALUE_BLOCK: tl.constexpr,
        BLOCK_KEYS: tl.constexpr,
    ):
        row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
        sentence, hypothesis = row // beam, row % beam
        k, v = tl.arange(0, KEY_BLOCK), tl.arange(0, VALUE_BLOCK)
        in_key, in_value = k < key_width, v < value_width
        position = tl.load(positions + sentence)
        query = tl.load(queries + row * query_stride + head * key_width + k, mask=in_key, other=0.0).to(tl.float32)
        new_key = tl.load(new_keys + row * key_stride + head * key_width + k, mask=in_key, other=0.0)
        new_value = tl.load(new_values + row * value_stride + head * value_width + v, mask=in_value, other=0.0)
        query *= scale
        first = (sentence * heads + head) * beam * capacity  # the sentence's first cache entry for this head
        new_entry = first + hypothesis * capacity + position
        tl.store(keys + new_entry * key_width + k, new_key, mask=in_key)
        tl.store(values + new_entry * value_width + v, new_value, mask=in_value)
        # online softmax over the new token and all preceding tokens, in one pass (Milakov & Gimelshein 2018)
        largest = tl.sum(query * new_key.to(tl.float32), axis=0)
        total = largest * 0.0 + 1.0
        weighted_sum = new_value.to(tl.float32)
        last = tl.where(tl.load(active + sentence) != 0, position, 0)
        for start in range(0, last, BLOCK_KEYS):
            columns = start + tl.arange(0, BLOCK_KEYS)
            valid = columns < position
            if beam == 1:
                entries = first + columns
            else:
                branch = tl.load(branches + row * capacity + columns, mask=valid, other=0)
                entries = first + branch * capacity + columns
            block = tl.load(
                keys + entries[:, None] * key_width + k[None, :], mask=valid[:, None] & in_key[None, :], other=0.0
            )
            scores = tl.sum(block.to(tl.float32) * query[None, :], axis=1)
            scores = tl.where(valid, scores, float("-inf"))
            new_largest = tl.maximum(largest, tl.max(scores, axis=0))
            weights = tl.exp(scores - new_largest)
            rescale = tl.exp(largest - new_largest)
            valid_values = valid[:, None] & in_value[None, :]
            block = tl.load(values + entries[:, None] * value_width + v[None, :], mask=valid_values, other=0.0)
            weighted_sum = weighted_sum * rescale + tl.sum(block.to(tl.float32) * weights[:, None], axis=0)
            total = total * rescale + tl.sum(weights, axis=0)
            largest = new_largest
        result = (weighted_sum / total).to(out.dtype.element_ty)
        tl.store(out + (row * heads + head) * value_width + v, result, mask=in_value)

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
        KEY_BLOCK: tl.constexpr,
        VALUE_BLOCK: tl.constexpr,
        BLOCK_KEYS: tl.constexpr,
    ):
        row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
        sentence = row // beam
        k, v = tl.arange(0, KEY_BLOCK), tl.arange(0, VALUE_BLOCK)
        in_key, in_value = k < key_width, v < value_width
        query = tl.load(queries + row * query_stride + head * key_width + k, mask=in_key, other=0.0).to(tl.float32)
        query *= scale
        first = (sentence * heads + head) * source
        largest = tl.sum(query, axis=0) * 0.0 - 1e30
        total = largest * 0.0
        weighted_sum = tl.zeros([VALUE_BLOCK], dtype=tl.float32)
        last = tl.where(tl.load(active + sentence) != 0, source, 0)
        for start in range(0, last, BLOCK_KEYS):
            columns = start + tl.arange(0, BLOCK_KEYS)
            valid = (columns < source) & (
                tl.load(mask + sentence * source + columns, mask=columns < source, other=0) != 0
            )
            entries = first + columns
            block = tl.load(
                keys + entries[:, None] * key_width + k[None, :], mask=valid[:, None] & in_key[None, :], other=0.0
            )
            scores = tl.sum(block.to(tl.float32) * query[None, :], axis=1)
            scores = tl.where(valid, scores, float("-inf"))
            new_largest = tl.maximum(largest, tl.max(scores, axis=0))
            weights = tl.exp(scores - new_largest)
            rescale = tl.exp(largest - new_largest)
            valid_values = valid[:, None] & in_value[None, :]
            block = tl.load(values + entries[:, None] * value_width + v[None, :], mask=valid_values, other=0.0)
            weighted_sum = weighted_sum * rescale + tl.sum(block.to(tl.float32) * weights[:, None], axis=0)
            total = total * rescale + tl.sum(weights, axis=0)
            largest = new_largest
        result = (weighted_sum / tl.where(total > 0, total, 1.0)).to(out.dtype.element_ty)
        tl.store(out + (row * heads + head) * value_width + v, result, mask=in_value)

    @triton.jit
    def _logsumexp(logits, out, size, BLOCK_LOGITS: tl.constexpr):  # type: ignore[no-untyped-def]
        row = tl.program_id(0).to(tl.int64)
        largest = tl.full([BLOCK_LOGITS], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_LOGITS], tl.float32)
        for start in range(0, size, BLOCK_LOGITS):
            entries = start + tl.arange(0, BLOCK_LOGITS)
            block = tl.load(logits + row * size + entries, mask=entries < size, other=float("-inf"))
            new_largest = tl.maximum(largest, block)
            finite = tl.where(new_largest == float("-inf"), 0.0, new_largest)
            total = total * tl.exp(largest - finite) + tl.exp(block - finite)
            largest = new_largest
        top = tl.max(largest, axis=0)
        result = tl.log(tl.sum(total * tl.exp(largest - top), axis=0)) + top
        tl.store(out + row, result)


def self_attention(
    queries: Tensor,
    new_keys: Tensor,
    new_values: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    positions: Tensor,
    branches: Tensor,
    active: Tensor,
    scale: float,
) -> Tensor:
    """Store the new key and value of each hypothesis, and attend over its tokens so far: (R, h, d_v).

    queries, new_keys (R, h, d_k), new_values (R, h, d_v): rows may be slices of a wider tensor. keys, values: (B, h, K,
    C, ·), filled up to the current positions, exclusive. positions: (B,) int64. branches: (B, K, C) int64, the index of
    the sentence's cache row that stores each position. active: (B,) bool; results of inactive sentences are undefined.
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
        _BLOCK_KEYS,
        num_warps=1,
    )
    return out


def cross_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, active: Tensor, scale: float
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
        _BLOCK_KEYS,
        num_warps=1,
    )
    return out


def logsumexp(logits: Tensor) -> Tensor:
    """Return ln Σ exp of each row of logits (R, V), float32 and contiguous: (R, 1)."""
    out = torch.empty(len(logits), 1, device=logits.device)
    _logsumexp[(len(logits),)](logits, out, logits.size(1), _BLOCK_LOGITS, num_warps=8)
    return out


def can_run_on(device: torch.device) -> bool:
    """Run one kernel as a test, and return whether it succeeds. If not, warn why the kernels are not used.

    Raises errors of failed allocations, after which the test may succeed later.
    """
    if not AVAILABLE:
        problem = "Triton is not installed: pip install triton"
    else:
        try:
            logits = torch.randn(2, 5, device=device)
            if torch.allclose(logsumexp(logits), logits.logsumexp(1, keepdim=True), atol=1e-5):
                return True
            problem = "they return wrong results on this GPU"
        except Exception as error:  # Triton, the compiler and the driver raise exceptions of many types
            if is_out_of_memory(error):
                raise
            problem = (
                f"{_reason(error)}. Triton needs a C compiler and the header files of Python "
                "(in Debian: apt install gcc python3-dev)"
            )
    warn(f"decoding uses PyTorch's attention, which is slower than Triton's kernels. They cannot be used: {problem}")
    return False


def _reason(error: Exception) -> str:
    if isinstance(error, CalledProcessError):  # its message is the command, with dozens of options
        return f"the C compiler {error.cmd[0]} failed with exit status {error.returncode}"
    return (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")
