"""Attention over packed rows: each sentence attends within itself or to its source, without padding."""

from typing import Any

import torch
from torch import Tensor

from dragoman.nn.kernels.backend import kernels
from dragoman.nn.kernels.interface import Geometry


class _PackedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, queries: Tensor, memory: Tensor | None, starts: tuple[Tensor, Tensor], geometry: Geometry
    ) -> Tensor:
        inputs = queries, *_keys_and_values(queries, memory, geometry)
        out = queries.new_empty(len(queries), geometry.heads * geometry.value_width)
        kernels(queries.device).attend(inputs, out, starts, geometry)
        context.save_for_backward(queries, memory, *starts)
        context.geometry = geometry
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, memory, *starts = context.saved_tensors
        geometry = context.geometry
        inputs = queries, *_keys_and_values(queries, memory, geometry)
        query_gradient = torch.empty_like(queries)
        memory_gradient = None if memory is None else torch.empty_like(memory)
        gradients = query_gradient, *_keys_and_values(query_gradient, memory_gradient, geometry)
        kernels(queries.device).differentiate_attention(
            inputs, gradient.contiguous(), gradients, (starts[0], starts[1]), geometry
        )
        return query_gradient, memory_gradient, None, None


def packed_attention(
    queries: Tensor,
    memory: Tensor | None,
    starts: tuple[Tensor, Tensor],
    *,
    longest: tuple[int, int],
    widths: tuple[int, int, int],
    scale: float,
    causal: bool = False,
) -> Tensor:
    """Return the contexts of all heads, (N, h · d_v), with zeros at filler. Differentiable, and deterministic.

    queries: (N, h · d_k), or (N, h · (2·d_k + d_v)) with the keys and values that they attend to in the same rows,
    which the layer computes in one product; memory is then None. memory: (M, h · (d_k + d_v)), the keys and values of
    the sources. All are contiguous. starts: the first row of each sentence and the number of rows of all sentences,
    (B + 1,) int32, for queries and for keys. longest: upper bounds of the sentences' lengths on both sides, at most
    128 on a GPU. widths: h, d_k and d_v. scale: factor of the scores. causal: whether a token attends only to itself
    and to earlier ones.
    """
    geometry = Geometry(longest, *widths, scale, causal)
    result: Tensor = _PackedAttention.apply(queries, memory, starts, geometry)  # type: ignore[no-untyped-call]
    return result


def _keys_and_values(queries: Tensor, memory: Tensor | None, geometry: Geometry) -> tuple[Tensor, Tensor]:
    width = geometry.heads * geometry.key_width
    joint = queries[:, width:] if memory is None else memory
    return joint[:, :width], joint[:, width:]
