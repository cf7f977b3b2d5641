"""`Packing`: converts the weights of a PyTorch Transformer to the library's structures; `PackedModel`: the result.

Widths, head widths and vocabulary sizes are padded with zeros to multiples of `library.LANES`. Padding does not change
results. One matrix after another is converted, so that the memory of large models is needed only once.
"""

import ctypes
from ctypes import c_void_p
from typing import Any, Literal
from weakref import finalize

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
from dragoman.text.symbols import BOS, EOS

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
        least, largest = torch.aminmax(parameter)  # not `isfinite`, which needs more memory than the parameter
        if not (torch.isfinite(least) and torch.isfinite(largest)):
            raise DivergedModelError(
                f"the model's weights contain NaN or infinity, first in {name}: its parameters are damaged or have "
                "diverged"
            )


class PackedModel:
    """A model in the memory of the library, which several engines may share. The vectors of its tokens are those of the
    PyTorch model if their width needs no padding.
    """

    def __init__(self, functions: ctypes.CDLL, source: library.Model, tables: list[Floats]) -> None:
        """tables: the arrays that the library does not copy. Raises ResourceError if memory runs out."""
        self._functions, self._tables = functions, tables
        self.sizes: tuple[int, int] = source.encoder.size, source.decoder.size
        """The sizes of the vocabularies of the encoder and of the decoder."""
        self._address = functions.dragoman_open(ctypes.byref(source))
        _check_memory(self._address is not None)
        finalize(self, functions.dragoman_close, self._address)

    def add_layer(self, layer: library.Layer, to_decoder: bool) -> None:
        """Pack the next layer of the encoder or of the decoder. Raises ResourceError if memory runs out."""
        _check_memory(self._functions.dragoman_add_layer(self._address, to_decoder, ctypes.byref(layer)) == 0)

    def start(self, owner: object, threads: int) -> int:
        """Return the address of an engine, which stops when its owner ceases to exist. The owner keeps this model.

        threads: the number of threads that a single worker uses for a batch. Raises ResourceError if memory runs out.
        """
        engine: int = self._functions.dragoman_start(self._address, threads)
        _check_memory(engine is not None)
        finalize(owner, self._functions.dragoman_stop, engine)
        return engine


def _check_memory(has_sufficed: bool) -> None:
    if not has_sufficed:
        raise ResourceError("the native engine's packed copy of the model does not fit into memory: use --engine torch")


class Packing:
    """A description of a model for the library, without its matrices, which are converted when the model is opened."""

    def __init__(
        self, encoder: TransformerEncoder | TransformerDecoder, decoder: TransformerDecoder | None = None
    ) -> None:
        """encoder: an encoder, or a decoder without a source that encodes texts from left to right.

        decoder: a decoder with its projection to the vocabulary; None if the states of the encoder are the result.
        Raises UnsupportedModelError with the setting of the unsupported part.
        """
        self._arrays: list[Floats] = []
        self._decoder = decoder
        self._layers: list[tuple[Any, library.Layer, bool]] = []
        """Each layer, its description, and whether it is one of the decoder."""
        stacks = [self._stack(encoder, is_encoder=True), library.Stack()]
        if decoder is not None:
            stacks[1] = self._stack(decoder, is_encoder=False)
        self._model = library.Model(*stacks)

    def open(self, functions: ctypes.CDLL, precision: Precision) -> PackedModel:
        """Return the packed model. Raises ResourceError if memory runs out."""
        small = len(self._arrays)
        self._model.precision, self._model.vocabulary = _PRECISIONS[precision], self._vocabulary()
        packed = PackedModel(functions, self._model, self._arrays[:small])
        for layer, description, is_of_decoder in self._layers:
            del self._arrays[small:]
            self._convert(layer, description, is_of_decoder)
            packed.add_layer(description, is_of_decoder)
        del self._arrays[small:]
        return packed

    def _vocabulary(self) -> library.Matrix:
        """Return the projection to the vocabulary; without a decoder, no matrix."""
        if self._decoder is None:
            return library.Matrix()
        projection, scale = self._decoder.projection, self._decoder.output_scale
        weight = to_floats(projection.weight)
        weight = weight if scale == 1 else weight * np.float32(scale)
        biases = np.zeros(len(weight), np.float32) if projection.bias is None else to_floats(projection.bias)
        return self._matrix(weight, biases, padding_value=-np.inf)

    def _stack(self, stack: TransformerEncoder | TransformerDecoder, is_encoder: bool) -> library.Stack:
        section, embedding = _section(stack, is_encoder), stack.embedding
        self._layers += [(layer, self._layer(layer, section, is_encoder), not is_encoder) for layer in stack.layers]
        orders = {each.order for layer in stack.layers for each in layer.children() if isinstance(each, Residual)}
        (tokens, scale), groups = token_vectors(embedding), group_vectors(embedding)
        width = padded_size(tokens.shape[1])
        packed = library.Stack(self.keep(pad_array(tokens, len(tokens), width)))
        packed.scale, packed.begin, packed.replaced = scale, BOS if embedding.starts_with_end else -1, EOS
        packed.layers, packed.width, packed.size = len(stack.layers), width, len(tokens)
        if packed_pre := orders == {"pre"}:
            packed.norm = self._norm(stack.norm, f"{section}.normalisation")
        packed.pre, packed.causal = packed_pre, is_encoder and isinstance(stack, TransformerDecoder)
        if groups is not None:
            packed.segments, packed.segment_count = self.keep(pad_array(groups, len(groups), width)), len(groups)
        if embedding.norm is not None:
            if not is_encoder:
                raise UnsupportedModelError(
                    "the native engine normalises the embeddings of encoders only, but model.embedding_norm is set"
                )
            packed.embedding_norm = self._norm(embedding.norm, "model.embedding_norm")
        return packed

    def _layer(self, layer: Any, section: str, is_encoder: bool) -> library.Layer:
        """Return the description of a layer. section: the settings of the stack, such as `model.encoder`."""
        packed, norm = library.Layer(), f"{section}.normalisation"
        if isinstance(layer.self_attention, SSRU) and not is_encoder:
            packed.recurrent = True  # the library stores the cell as the keys of a single head
            packed.attention = library.Attention(1, padded_size(layer.self_attention.forget.out_features), 0)
        else:
            packed.attention = _attention(layer.self_attention, f"{section}.attention", self)
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
            packed.around_source = self._norm(layer.around_cross_attention.norm, norm)
        network = layer.feedforward
        if type(network) is not FeedForward:
            raise UnsupportedModelError(f"the native engine does not support experts, but {section}.experts is set")
        if network.activation_name not in _ACTIVATIONS:
            raise UnsupportedModelError(
                f"the native engine does not support {section}.activation={network.activation_name}"
            )
        packed.activation = _ACTIVATIONS[network.activation_name]
        packed.around_feedforward = self._norm(layer.around_feedforward.norm, norm)
        return packed

    def _convert(self, layer: Any, packed: library.Layer, is_of_decoder: bool) -> None:
        """Convert the matrices of a layer for its description."""
        if packed.recurrent:
            packed.projections = self._recurrent_unit(layer.self_attention)
        else:
            packed.projections = self._projections(layer.self_attention, "qkv")
            packed.output = self._output(layer.self_attention)
        if is_of_decoder:
            packed.source_query = self._projections(layer.cross_attention, "q")
            packed.source_projections = self._projections(layer.cross_attention, "kv")
            packed.source_output = self._output(layer.cross_attention)
        network = layer.feedforward
        packed.inner, packed.outer = self._linear(network.inner), self._linear(network.outer)
        if network.gate is not None:
            packed.gate = self._linear(network.gate)

    def _recurrent_unit(self, unit: SSRU) -> library.Matrix:
        """Return the projections of an SSRU cell: the gate followed by the candidate (2·width, inputs)."""
        width, inputs = (padded_size(size) for size in unit.forget.weight.shape)
        weights = [pad_array(to_floats(each.weight), width, inputs) for each in (unit.forget, unit.candidate)]
        bias = np.concatenate([pad_array(to_floats(unit.forget.bias), width), np.zeros(width, np.float32)])
        return self._packed(np.concatenate(weights), bias)

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
        return self._matrix(to_floats(linear.weight), _bias(linear))

    def _matrix(self, weight: Floats, bias: Floats, padding_value: float = 0.0) -> library.Matrix:
        """Return a padded matrix. padding_value: the bias of the padding outputs."""
        outputs, inputs = weight.shape
        biases = np.full(padded_size(outputs), padding_value, np.float32)
        biases[:outputs] = bias
        return self._packed(pad_array(weight, outputs, padded_size(inputs)), biases)

    def _packed(self, weight: Floats, bias: Floats) -> library.Matrix:
        return library.Matrix(self.keep(weight), self.keep(bias), len(bias), weight.shape[1], len(weight))

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
