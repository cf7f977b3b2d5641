"""`Packing`: converts the weights of a PyTorch Transformer to the library's structures.

Widths, head widths and vocabulary sizes are padded with zeros to multiples of `library.LANES`. Padding does not change
results.
"""

import ctypes
from ctypes import c_void_p
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from dragoman.base.errors import ModelError, ResourceError
from dragoman.engines.native.embeddings import (
    Floats,
    UnsupportedModelError,
    group_vectors,
    pad_array,
    padded_size,
    to_floats,
    token_vectors,
)
from dragoman.models.families.transformer import TransformerDecoder, TransformerEncoder
from dragoman.native import library
from dragoman.nn.attention.scorers import Dot, ScaledDot
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.attention.ssru import SSRU
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.normalisation import LayerNorm, RMSNorm
from dragoman.nn.positions.alibi import Alibi
from dragoman.nn.positions.rotary import Rotary
from dragoman.nn.residual import Residual

Precision = Literal["float32", "bfloat16", "int8"]
_PRECISIONS = {"float32": library.FLOAT32, "bfloat16": library.BFLOAT16, "int8": library.INT8}
_ACTIVATIONS = {
    "relu": library.RELU,
    "gelu": library.GELU,
    "gelu_tanh": library.GELU_TANH,
    "swish": library.SWISH,
    "swiglu": library.SWIGLU,
}
"""The library's activations, by the names of the settings."""


class DivergedModelError(ModelError):
    """The parameters of a model are not finite, so that no engine computes it."""


def check_finite(model: nn.Module) -> None:
    """Raise DivergedModelError with the name of the first parameter that contains NaN or infinity."""
    for name, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise DivergedModelError(
                f"the model's weights contain NaN or infinity, first in {name}: its parameters are damaged or have "
                "diverged"
            )


class Packing:
    """A `library.Model` and the arrays that it points to. It must outlive the call that opens the model."""

    def __init__(
        self, encoder: TransformerEncoder | TransformerDecoder, decoder: TransformerDecoder | None = None
    ) -> None:
        """encoder: an encoder, or a decoder without a source that encodes texts from left to right.

        decoder: a decoder with its projection to the vocabulary; None if the states of the encoder are the result.
        Raises UnsupportedModelError with the setting of the unsupported part.
        """
        self._arrays: list[Any] = []
        stacks = [self._stack(encoder, is_encoder=True), library.Stack()]
        vocabulary = library.Matrix()
        if decoder is not None:
            stacks[1] = self._stack(decoder, is_encoder=False)
            weight = to_floats(decoder.projection.weight) * np.float32(decoder.output_scale)
            bias = decoder.projection.bias
            biases = np.zeros(len(weight), np.float32) if bias is None else to_floats(bias)
            vocabulary = self._matrix(weight, biases, len(weight), weight.shape[1], padding_value=-np.inf)
        self.sizes = stacks[0].size, stacks[1].size
        """The sizes of the vocabularies of the encoder and of the decoder."""
        self._model = library.Model(*stacks, vocabulary)

    def open(self, functions: ctypes.CDLL, precision: Precision, threads: int) -> int:
        """Return the address of the opened model, which the caller closes with `dragoman_close`.

        threads: the number of threads that a single worker uses for a batch. Raises ResourceError if memory runs out.
        """
        self._model.precision, self._model.threads = _PRECISIONS[precision], threads
        address: int | None = functions.dragoman_open(ctypes.byref(self._model))
        if address is None:
            raise ResourceError(
                "the native engine's packed copy of the model does not fit into memory: use --engine torch"
            )
        return address

    def _stack(self, stack: TransformerEncoder | TransformerDecoder, is_encoder: bool) -> library.Stack:
        section = _section(stack, is_encoder)
        layers = [self._layer(layer, section, is_encoder) for layer in stack.layers]
        orders = {each.order for layer in stack.layers for each in layer.children() if isinstance(each, Residual)}
        array = (library.Layer * len(layers))(*layers)
        self._arrays.append(array)
        tokens, groups = token_vectors(stack.embedding), group_vectors(stack.embedding)
        width = padded_size(tokens.shape[1])
        packed = library.Stack(array, self.keep(pad_array(tokens, len(tokens), width)))
        packed.layers, packed.width, packed.size = len(layers), width, len(tokens)
        if packed_pre := orders == {"pre"}:
            packed.norm = self._norm(stack.norm, f"{section}.normalisation")
        packed.pre, packed.causal = packed_pre, is_encoder and isinstance(stack, TransformerDecoder)
        if groups is not None:
            packed.segments, packed.segment_count = self.keep(pad_array(groups, len(groups), width)), len(groups)
        if stack.embedding.norm is not None:
            if not is_encoder:
                raise UnsupportedModelError(
                    "the native engine normalises the embeddings of encoders only, but model.embedding_norm is set"
                )
            packed.embedding_norm = self._norm(stack.embedding.norm, "model.embedding_norm")
        return packed

    def _layer(self, layer: Any, section: str, is_encoder: bool) -> library.Layer:
        """section: the settings of the stack, such as `model.encoder`."""
        packed, norm = library.Layer(), f"{section}.normalisation"
        if isinstance(layer.self_attention, SSRU) and not is_encoder:
            packed.recurrent, packed.attention, packed.projections = True, *self._recurrent_unit(layer.self_attention)
        else:
            packed.attention = _attention(layer.self_attention, f"{section}.attention", self)
            packed.projections = self._projections(layer.self_attention, "qkv")
            packed.output = self._output(layer.self_attention)
        around = getattr(layer, "around_attention", None) or layer.around_self_attention
        if not around.connected:
            raise UnsupportedModelError(
                f"the native engine requires residual connections, but {section}.residual is false"
            )
        packed.around_attention = self._norm(around.norm, norm)
        if not is_encoder:
            if layer.cross_attention is None:
                raise UnsupportedModelError(
                    f"the native engine requires cross-attention in every layer, but {section}.cross_attention is null"
                )
            packed.source = _attention(layer.cross_attention, f"{section}.cross_attention", self)
            packed.source_query = self._projections(layer.cross_attention, "q")
            packed.source_projections = self._projections(layer.cross_attention, "kv")
            packed.source_output = self._output(layer.cross_attention)
            packed.around_source = self._norm(layer.around_cross_attention.norm, norm)
        network = layer.feedforward
        if type(network) is not FeedForward:
            raise UnsupportedModelError(f"the native engine does not support experts, but {section}.experts is set")
        if network.activation_name not in _ACTIVATIONS:
            raise UnsupportedModelError(
                f"the native engine does not support {section}.activation={network.activation_name}"
            )
        packed.activation = _ACTIVATIONS[network.activation_name]
        packed.inner, packed.outer = self._linear(network.inner), self._linear(network.outer)
        if network.gate is not None:
            packed.gate = self._linear(network.gate)
        packed.around_feedforward = self._norm(layer.around_feedforward.norm, norm)
        return packed

    def _recurrent_unit(self, unit: SSRU) -> tuple[library.Attention, library.Matrix]:
        """Return the attention and projections of an SSRU cell: the gate followed by the candidate (2·width, inputs).

        The library stores the cell as the keys of a single head.
        """
        width, inputs = (padded_size(size) for size in unit.forget.weight.shape)
        weights = [pad_array(to_floats(each.weight), width, inputs) for each in (unit.forget, unit.candidate)]
        bias = np.concatenate([pad_array(to_floats(unit.forget.bias), width), np.zeros(width, np.float32)])
        return library.Attention(1, width, 0), self._packed(np.concatenate(weights), bias)

    def _projections(self, attention: SoftAttention, which: str) -> library.Matrix:
        """Return the concatenated projections, with padded heads: (Σ heads · head width, inputs).

        which: a string of `q`, `k` and `v`, in the order of concatenation.
        """
        heads = attention.heads
        value = attention.key if attention.config.tie_keys_and_values else attention.value
        parts = {"q": attention.query, "k": attention.key, "v": value}
        weights, biases = [], []
        for name in which:
            weight, bias = to_floats(parts[name].weight), _bias(parts[name])
            own_heads = heads if name == "q" else attention.kv_heads
            head, inputs = len(weight) // own_heads, weight.shape[1]
            if own_heads < heads:  # the library has a key for each query, so that shared keys are repeated
                weight = weight.reshape(own_heads, head, inputs).repeat(heads // own_heads, 0).reshape(-1, inputs)
                bias = bias.reshape(own_heads, head).repeat(heads // own_heads, 0).reshape(-1)
            padded_weight = np.zeros((heads, padded_size(head), padded_size(inputs)), np.float32)
            padded_weight[:, :head, :inputs] = weight.reshape(heads, head, inputs)
            weights.append(padded_weight.reshape(-1, padded_size(inputs)))
            biases.append(pad_array(bias.reshape(heads, head), heads, padded_size(head)).reshape(-1))
        return self._packed(np.concatenate(weights), np.concatenate(biases))

    def _output(self, attention: SoftAttention) -> library.Matrix:
        weight, bias, heads = to_floats(attention.output.weight), _bias(attention.output), attention.heads
        outputs, head = len(weight), weight.shape[1] // heads
        padded_weight = np.zeros((padded_size(outputs), heads, padded_size(head)), np.float32)
        padded_weight[:outputs, :, :head] = weight.reshape(outputs, heads, head)
        return self._packed(padded_weight.reshape(padded_size(outputs), -1), pad_array(bias, padded_size(outputs)))

    def _linear(self, linear: nn.Linear) -> library.Matrix:
        weight = to_floats(linear.weight)
        return self._matrix(weight, _bias(linear), *weight.shape)

    def _matrix(
        self, weight: Floats, bias: Floats, outputs: int, inputs: int, padding_value: float = 0.0
    ) -> library.Matrix:
        """Return a padded matrix. padding_value: the bias of the padding outputs."""
        biases = np.full(padded_size(outputs), padding_value, np.float32)
        biases[:outputs] = bias
        return self._packed(pad_array(weight, padded_size(outputs), padded_size(inputs)), biases)

    def _packed(self, weight: Floats, bias: Floats) -> library.Matrix:
        return library.Matrix(self.keep(weight), self.keep(bias), *weight.shape)

    def _norm(self, norm: nn.Module, setting: str) -> library.Norm:
        if isinstance(norm, LayerNorm):
            kind, offset = library.LAYER_NORM, norm.bias
        elif isinstance(norm, RMSNorm):
            kind, offset = library.RMS_NORM, None
        else:
            raise UnsupportedModelError(f"the native engine requires {setting}.kind=layer or rms")
        (width,) = norm.normalized_shape
        parameters = [
            None if each is None else self.keep(pad_array(to_floats(each), padded_size(width)))
            for each in (norm.weight, offset)
        ]
        return library.Norm(*parameters, float(norm.eps or 0.0), kind, width, padded_size(width))

    def keep(self, array: Floats) -> c_void_p:
        """Return a pointer to the array, which stays alive as long as this object."""
        array = np.ascontiguousarray(array, np.float32)
        self._arrays.append(array)
        return c_void_p(array.ctypes.data)


def _bias(linear: nn.Linear) -> Floats:
    """Return the bias of a layer; zeros if it has none."""
    return np.zeros(linear.out_features, np.float32) if linear.bias is None else to_floats(linear.bias)


def _section(stack: TransformerEncoder | TransformerDecoder, is_encoder: bool) -> str:
    """Return the settings of a stack of layers."""
    if isinstance(stack, TransformerEncoder):
        return "model.encoder"
    return "model.encoder.decoder" if is_encoder else "model.decoder"


def _attention(attention: nn.Module, setting: str, packing: Packing) -> library.Attention:
    if type(attention) is not SoftAttention:
        raise UnsupportedModelError(f"the native engine requires {setting}.kind=soft")
    config, scorer, relation = attention.config, attention.scorer, attention.relation
    if config.normaliser != "softmax":
        raise UnsupportedModelError(
            f"the native engine requires {setting}.normaliser=softmax, but it is {config.normaliser}"
        )
    if not config.projections or attention.combine != "project":
        raise UnsupportedModelError(
            f"the native engine requires {setting}.projections=true and {setting}.combine=project"
        )
    if type(scorer) not in (ScaledDot, Dot):
        raise UnsupportedModelError(
            f"the native engine requires {setting}.scorer.kind=scaled_dot or dot, but it is {config.scorer.kind}"
        )
    if relation is not None and type(relation) not in (Rotary, Alibi):
        raise UnsupportedModelError(
            "the native engine does not support relative positions other than rotary and alibi (model.positions.kind)"
        )
    heads = attention.heads
    key = attention.key.out_features // attention.kv_heads
    value = key if config.tie_keys_and_values else attention.value.out_features // attention.kv_heads
    slopes = packing.keep(to_floats(relation.slopes)) if isinstance(relation, Alibi) else None
    scale = key**-0.5 if isinstance(scorer, ScaledDot) else 1.0
    return library.Attention(heads, padded_size(key), padded_size(value), isinstance(relation, Rotary), scale, slopes)
