"""Attention over packed rows with its projections: a sentence attends within itself or to its source."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.nn.kernels.backend import kernels
from dragoman.nn.kernels.interface import Geometry, Rotation
from dragoman.nn.kernels.linear import column_sums, product


class _PackedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        memory: Tensor | None,
        starts: tuple[Tensor, Tensor],
        geometry: Geometry,
        rotation: Rotation | None,
        *parameters: Tensor | None,
    ) -> Tensor:
        """parameters: W_O and b_O, or None; then weights, and then biases, of the projections of the states."""
        output, output_bias, *projections = parameters
        weight, bias = _joint(projections)
        queries = product(states, weight, bias)
        rotated = 2 * geometry.heads if memory is None else geometry.heads
        if rotation is not None:
            kernels(states.device).rotate(queries, rotation, (rotated, geometry.key_width), False)
        inputs = queries, *_keys_and_values(queries, memory, geometry)
        contexts = queries.new_empty(len(queries), geometry.heads * geometry.value_width)
        kernels(queries.device).attend(inputs, contexts, starts, geometry)
        context.save_for_backward(states, memory, *starts, queries, contexts, output, weight)
        context.settings = geometry, rotation, rotated, [None if each is None else len(each) for each in parameters]
        return contexts if output is None else product(contexts, output, output_bias)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, memory, *starts, queries, contexts, output, weight = context.saved_tensors
        geometry, rotation, rotated, sizes = context.settings
        gradient = gradient.contiguous()
        output_gradient = output_bias_gradient = None
        if output is not None:
            output_gradient = gradient.t() @ contexts
            output_bias_gradient = None if sizes[1] is None else column_sums(gradient)
            gradient = gradient @ output
        inputs = queries, *_keys_and_values(queries, memory, geometry)
        change = torch.empty_like(queries)
        memory_gradient = None if memory is None else torch.empty_like(memory)
        gradients = change, *_keys_and_values(change, memory_gradient, geometry)
        backend = kernels(queries.device)
        backend.differentiate_attention(inputs, gradient, gradients, (starts[0], starts[1]), geometry)
        if rotation is not None:
            backend.rotate(change, rotation, (rotated, geometry.key_width), True)
        weights, biases = sizes[2 : 2 + len(sizes[2:]) // 2], sizes[2 + len(sizes[2:]) // 2 :]
        weight_gradients = torch.split(change.t() @ states, weights)
        bias_gradients = [None] * len(biases) if biases[0] is None else torch.split(column_sums(change), biases)
        return (
            change @ weight,
            memory_gradient,
            None,
            None,
            None,
            output_gradient,
            output_bias_gradient,
            *weight_gradients,
            *bias_gradients,
        )


def packed_attention(
    states: Tensor,
    memory: Tensor | None,
    starts: tuple[Tensor, Tensor],
    geometry: Geometry,
    *,
    projections: Sequence[tuple[Tensor, Tensor | None]],
    output: tuple[Tensor, Tensor | None] | None = None,
    rotation: Rotation | None = None,
) -> Tensor:
    """Attend from packed states (N, d): (N, d'), with contexts of zeros at filler. Differentiable, and deterministic.

    memory: (M, h · (d_k + d_v)), the keys and values of the sources, contiguous; None: the states attend to themselves.
    starts: the first row of each sentence and the number of rows of all sentences, (B + 1,) int32, for queries and for
    keys. projections: weight and bias of those of queries, and without memory of keys and values. Either all have a
    bias or none. output: weight and bias of W_O, applied to the contexts of all heads (N, h · d_v); None: the result is
    the contexts. rotation: of queries, and without memory of keys.
    """
    weights, biases = zip(*projections, strict=True)
    parameters = (*((None, None) if output is None else output), *weights, *biases)
    result: Tensor = _PackedAttention.apply(states, memory, starts, geometry, rotation, *parameters)  # type: ignore[no-untyped-call]
    return result


def _joint(projections: Sequence[Tensor | None]) -> tuple[Tensor, Tensor | None]:
    """Return the weights, which are followed by the biases, as one matrix, and the biases as one vector."""
    count = len(projections) // 2
    if count == 1:
        assert projections[0] is not None
        return projections[0], projections[1]
    biases = [each for each in projections[count:] if each is not None]
    return torch.cat([each for each in projections[:count] if each is not None]), torch.cat(biases) if biases else None


def _keys_and_values(queries: Tensor, memory: Tensor | None, geometry: Geometry) -> tuple[Tensor, Tensor]:
    width = geometry.heads * geometry.key_width
    joint = queries[:, width:] if memory is None else memory
    return joint[:, :width], joint[:, width:]
