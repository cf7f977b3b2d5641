"""Attention over packed rows: each sentence attends within itself or to its source, without padding.

PyTorch's attention kernels divide sequences into blocks of 64 to 128 tokens and need padded tensors, so most of their
work on short sentences is padding: with sentences of 13 tokens they took a quarter of an update on an H200. Here one
program computes one head of one sentence of at most 128 tokens, with all scores in registers, so that nothing but
queries, keys, values and results is read or written.
"""

from torch import Tensor

from dragoman.nn.kernels.interface import Geometry

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs does not include Triton
    triton = None

if triton is not None:

    @triton.jit
    def _weights(  # type: ignore[no-untyped-def]
        query, key, rows, columns, key_count, scale, CAUSAL: tl.constexpr
    ):
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        allowed = (columns < key_count)[None, :]
        if CAUSAL:
            allowed = allowed & (columns[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -1e30)
        weights = tl.where(allowed, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
        return weights / tl.maximum(tl.sum(weights, 1), 1e-30)[:, None]

    @triton.jit
    def _fill(pointer, first, last, stride, width: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        """Fill the rows first … last − 1 of one head with zeros."""
        columns = tl.arange(0, BLOCK)
        zeros = tl.zeros([16, BLOCK], pointer.dtype.element_ty)
        for start in range(first, last, 16):
            rows = start + tl.arange(0, 16)
            places = rows.to(tl.int64)[:, None] * stride + columns[None, :]
            tl.store(pointer + places, zeros, mask=(rows < last)[:, None] & (columns < width)[None, :])

    @triton.jit
    def _forward(  # type: ignore[no-untyped-def]
        queries,
        keys,
        values,
        out,
        query_starts,
        key_starts,
        sentences,
        query_rows,
        scale,
        query_stride,
        key_stride,
        value_stride,
        out_stride,
        key_width: tl.constexpr,
        value_width: tl.constexpr,
        QUERIES: tl.constexpr,
        KEYS: tl.constexpr,
        KEY_BLOCK: tl.constexpr,
        VALUE_BLOCK: tl.constexpr,
        CAUSAL: tl.constexpr,
    ):
        sentence, head = tl.program_id(0), tl.program_id(1)
        out += head * value_width
        first = tl.load(query_starts + sentence)
        if sentence == sentences:
            _fill(out, first, query_rows, out_stride, value_width, VALUE_BLOCK)
            return
        count = tl.load(query_starts + sentence + 1) - first
        if count == 0:
            return
        key_first = tl.load(key_starts + sentence)
        key_count = tl.load(key_starts + sentence + 1) - key_first
        rows, columns = tl.arange(0, QUERIES), tl.arange(0, KEYS)
        k, v = tl.arange(0, KEY_BLOCK), tl.arange(0, VALUE_BLOCK)
        in_query, in_key = rows < count, columns < key_count
        query_places = (first + rows).to(tl.int64)[:, None]
        key_places = (key_first + columns).to(tl.int64)[:, None]
        in_width, in_value = (k < key_width)[None, :], (v < value_width)[None, :]
        query = tl.load(
            queries + query_places * query_stride + head * key_width + k[None, :],
            mask=in_query[:, None] & in_width,
            other=0.0,
        )
        key = tl.load(
            keys + key_places * key_stride + head * key_width + k[None, :], mask=in_key[:, None] & in_width, other=0.0
        )
        value = tl.load(
            values + key_places * value_stride + head * value_width + v[None, :],
            mask=in_key[:, None] & in_value,
            other=0.0,
        )
        weights = _weights(query, key, rows, columns, key_count, scale, CAUSAL)
        result = tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        tl.store(
            out + query_places * out_stride + v[None, :],
            result.to(out.dtype.element_ty),
            mask=in_query[:, None] & in_value,
        )

    @triton.jit
    def _backward(  # type: ignore[no-untyped-def]
        queries,
        keys,
        values,
        gradients,
        query_gradients,
        key_gradients,
        value_gradients,
        query_starts,
        key_starts,
        sentences,
        query_rows,
        key_rows,
        scale,
        query_stride,
        key_stride,
        value_stride,
        gradient_stride,
        key_width: tl.constexpr,
        value_width: tl.constexpr,
        QUERIES: tl.constexpr,
        KEYS: tl.constexpr,
        KEY_BLOCK: tl.constexpr,
        VALUE_BLOCK: tl.constexpr,
        CAUSAL: tl.constexpr,
    ):
        sentence, head = tl.program_id(0), tl.program_id(1)
        query_gradients += head * key_width
        key_gradients += head * key_width
        value_gradients += head * value_width
        first, key_first = tl.load(query_starts + sentence), tl.load(key_starts + sentence)
        if sentence == sentences:
            _fill(query_gradients, first, query_rows, query_stride, key_width, KEY_BLOCK)
            _fill(key_gradients, key_first, key_rows, key_stride, key_width, KEY_BLOCK)
            _fill(value_gradients, key_first, key_rows, value_stride, value_width, VALUE_BLOCK)
            return
        count = tl.load(query_starts + sentence + 1) - first
        key_count = tl.load(key_starts + sentence + 1) - key_first
        rows, columns = tl.arange(0, QUERIES), tl.arange(0, KEYS)
        k, v = tl.arange(0, KEY_BLOCK), tl.arange(0, VALUE_BLOCK)
        in_query, in_key = (rows < count)[:, None], (columns < key_count)[:, None]
        query_places = (first + rows).to(tl.int64)[:, None]
        key_places = (key_first + columns).to(tl.int64)[:, None]
        in_width, in_value = (k < key_width)[None, :], (v < value_width)[None, :]
        query = tl.load(
            queries + query_places * query_stride + head * key_width + k[None, :], mask=in_query & in_width, other=0.0
        )
        key = tl.load(keys + key_places * key_stride + head * key_width + k[None, :], mask=in_key & in_width, other=0.0)
        value = tl.load(
            values + key_places * value_stride + head * value_width + v[None, :], mask=in_key & in_value, other=0.0
        )
        gradient = tl.load(
            gradients + query_places * gradient_stride + head * value_width + v[None, :],
            mask=in_query & in_value,
            other=0.0,
        )
        weights = _weights(query, key, rows, columns, key_count, scale, CAUSAL)
        weight_gradient = tl.dot(gradient, tl.trans(value), input_precision="ieee")
        mean = tl.sum(weights * weight_gradient, 1)[:, None]
        score_gradient = (weights * (weight_gradient - mean) * scale).to(query.dtype)
        tl.store(
            query_gradients + query_places * query_stride + k[None, :],
            tl.dot(score_gradient, key, input_precision="ieee").to(query_gradients.dtype.element_ty),
            mask=in_query & in_width,
        )
        tl.store(
            key_gradients + key_places * key_stride + k[None, :],
            tl.dot(tl.trans(score_gradient), query, input_precision="ieee").to(key_gradients.dtype.element_ty),
            mask=in_key & in_width,
        )
        tl.store(
            value_gradients + key_places * value_stride + v[None, :],
            tl.dot(tl.trans(weights.to(gradient.dtype)), gradient, input_precision="ieee").to(
                value_gradients.dtype.element_ty
            ),
            mask=in_key & in_value,
        )


def attend(
    inputs: tuple[Tensor, Tensor, Tensor], out: Tensor, starts: tuple[Tensor, Tensor], geometry: Geometry
) -> None:
    """See `Kernels.attend`."""
    queries, keys, values = inputs
    sentences = len(starts[0]) - 1
    _forward[sentences + 1, geometry.heads](
        queries,
        keys,
        values,
        out,
        *starts,
        sentences,
        len(queries),
        geometry.scale,
        queries.stride(0),
        keys.stride(0),
        values.stride(0),
        out.stride(0),
        geometry.key_width,
        geometry.value_width,
        *_blocks(geometry),
        geometry.causal,
        num_warps=_warps(geometry),
    )


def differentiate_attention(
    inputs: tuple[Tensor, Tensor, Tensor],
    gradient: Tensor,
    gradients: tuple[Tensor, Tensor, Tensor],
    starts: tuple[Tensor, Tensor],
    geometry: Geometry,
) -> None:
    """See `Kernels.differentiate_attention`."""
    queries, keys, values = inputs
    sentences = len(starts[0]) - 1
    _backward[sentences + 1, geometry.heads](
        *inputs,
        gradient,
        *gradients,
        *starts,
        sentences,
        len(queries),
        len(keys),
        geometry.scale,
        queries.stride(0),
        keys.stride(0),
        values.stride(0),
        gradient.stride(0),
        geometry.key_width,
        geometry.value_width,
        *_blocks(geometry),
        geometry.causal,
        num_warps=_warps(geometry),
    )


def _blocks(geometry: Geometry) -> tuple[int, ...]:
    sizes = (*geometry.longest, geometry.key_width, geometry.value_width)
    return tuple(max(16, triton.next_power_of_2(each)) for each in sizes)


def _warps(geometry: Geometry) -> int:
    longest = max(geometry.longest)
    return 2 if longest <= 32 else 4 if longest <= 64 else 8
