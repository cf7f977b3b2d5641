"""`Packing`: converts the weights of a PyTorch Transformer to the library's structures.

Widths, head widths and vocabulary sizes are padded with zeros to multiples of `library.LANES`. Padding does not change
results.
"""

from ctypes import c_void_p
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError, ModelError
from dragoman.models.seq2seq import Seq2Seq
from dragoman.models.transformer import TransformerDecoder, TransformerEncoder
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.attention.ssru import SSRU
from dragoman.nn.embedding import Embedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.normalisation import LayerNorm, RMSNorm
from dragoman.nn.positions.absolute import Added, Concatenated
from dragoman.nn.positions.alibi import Alibi
from dragoman.nn.positions.naive import Fraction
from dragoman.nn.positions.rotary import Rotary, rotary_angles
from dragoman.nn.positions.scheme import PositionEmbedding
from dragoman.nn.residual import Residual
from dragoman.nn.scorers import Dot, ScaledDot
from dragoman.translation.engines.native import library

Floats = NDArray[np.float32]
_ACTIVATIONS = {
    ("relu", False): library.RELU,
    ("gelu", False): library.GELU,
    ("silu", False): library.SWISH,
    ("silu", True): library.SWIGLU,
}
"""The library's activations. The keys are the name of torch's function and whether the network has a gate."""


class UnsupportedModelError(ConfigError):
    """Raised for a model with a part that the native engine does not support."""


def padded(count: int) -> int:
    """Round up to a multiple of 16, the number of floats in the widest register."""
    return -(-count // library.LANES) * library.LANES


def stacks(model: Seq2Seq) -> tuple[TransformerEncoder, TransformerDecoder]:
    """Return the encoder and decoder of a model. Raises UnsupportedModelError unless both are Transformers."""
    encoder, decoder = model.encoder, model.decoder
    if isinstance(encoder, TransformerEncoder) and isinstance(decoder, TransformerDecoder):
        return encoder, decoder
    side, other = ("decoder", decoder) if isinstance(encoder, TransformerEncoder) else ("encoder", encoder)
    raise UnsupportedModelError(
        f"the native engine supports only Transformers, but this model's {side} is a {type(other).__name__}"
    )


class Packing:
    """A `library.Model` and the arrays that it points to. It must outlive the call that opens the model.

    The caller sets its precision and number of threads. Raises UnsupportedModelError with the name of the unsupported
    part, and ModelError for weights that are not finite.
    """

    def __init__(self, model: Seq2Seq) -> None:
        self._arrays: list[Any] = []
        encoder, decoder = stacks(model)
        weight = _numbers(decoder.projection.weight)
        projection_bias = decoder.projection.bias
        bias = np.zeros(len(weight), np.float32) if projection_bias is None else _numbers(projection_bias)
        vocabulary = self._matrix(weight, bias, len(weight), weight.shape[1], padding_value=-np.inf)
        self.model = library.Model(self._stack(encoder), self._stack(decoder), vocabulary, library.FLOAT32, 1)

    def _stack(self, stack: TransformerEncoder | TransformerDecoder) -> library.Stack:
        layers = [self._layer(layer) for layer in stack.layers]
        orders = {each.order for layer in stack.layers for each in layer.children() if isinstance(each, Residual)}
        array = (library.Layer * len(layers))(*layers)
        self._arrays.append(array)
        tokens = token_vectors(stack.embedding)
        pre = orders == {"pre"}
        norm = self._norm(stack.norm) if pre else library.Norm()
        width = padded(tokens.shape[1])
        table = self._keep(_padded(tokens, len(tokens), width))
        return library.Stack(array, table, norm, len(layers), width, len(tokens), pre)

    def _layer(self, layer: Any) -> library.Layer:
        packed = library.Layer()
        if isinstance(layer.self_attention, SSRU):
            packed.recurrent, packed.attention, packed.projections = True, *self._recurrent_unit(layer.self_attention)
        else:
            packed.attention = _attention(layer.self_attention, self)
            packed.projections = self._projections(layer.self_attention, "qkv")
            packed.output = self._output(layer.self_attention)
        packed.around_attention = self._around(getattr(layer, "around_attention", None) or layer.around_self_attention)
        if hasattr(layer, "cross_attention"):
            if layer.cross_attention is None:
                raise UnsupportedModelError(
                    "the native engine requires cross-attention in every decoder layer, but cross_attention is null"
                )
            packed.source = _attention(layer.cross_attention, self)
            packed.source_query = self._projections(layer.cross_attention, "q")
            packed.source_projections = self._projections(layer.cross_attention, "kv")
            packed.source_output = self._output(layer.cross_attention)
            packed.around_source = self._around(layer.around_cross_attention)
        network = layer.feedforward
        if type(network) is not FeedForward:
            raise UnsupportedModelError(
                "the native engine supports only ordinary feed-forward networks, but this model has a "
                f"{type(network).__name__}"
            )
        name = network.activation.__name__, network.gate is not None
        if name not in _ACTIVATIONS:
            raise UnsupportedModelError(
                f"the native engine does not support the activation {name[0]}{' with a gate' * name[1]}"
            )
        packed.activation = _ACTIVATIONS[name]
        packed.inner, packed.outer = self._linear(network.inner), self._linear(network.outer)
        if network.gate is not None:
            packed.gate = self._linear(network.gate)
        packed.around_feedforward = self._around(layer.around_feedforward)
        return packed

    def _recurrent_unit(self, unit: SSRU) -> tuple[library.Attention, library.Matrix]:
        """Return the attention and projections of an SSRU cell: the gate followed by the candidate (2·width, inputs).

        The library stores the cell as the keys of a single head.
        """
        width, inputs = (padded(size) for size in unit.forget.weight.shape)
        weights = [_padded(_numbers(each.weight), width, inputs) for each in (unit.forget, unit.candidate)]
        bias = np.concatenate([_padded(_numbers(unit.forget.bias), width), np.zeros(width, np.float32)])
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
            weight, bias = _numbers(parts[name].weight), _numbers(parts[name].bias)
            head, inputs = len(weight) // heads, weight.shape[1]
            padded_weight = np.zeros((heads, padded(head), padded(inputs)), np.float32)
            padded_weight[:, :head, :inputs] = weight.reshape(heads, head, inputs)
            weights.append(padded_weight.reshape(-1, padded(inputs)))
            biases.append(_padded(bias.reshape(heads, head), heads, padded(head)).reshape(-1))
        return self._packed(np.concatenate(weights), np.concatenate(biases))

    def _output(self, attention: SoftAttention) -> library.Matrix:
        weight, bias, heads = _numbers(attention.output.weight), _numbers(attention.output.bias), attention.heads
        outputs, head = len(weight), weight.shape[1] // heads
        padded_weight = np.zeros((padded(outputs), heads, padded(head)), np.float32)
        padded_weight[:outputs, :, :head] = weight.reshape(outputs, heads, head)
        return self._packed(padded_weight.reshape(padded(outputs), -1), _padded(bias, padded(outputs)))

    def _linear(self, linear: nn.Linear) -> library.Matrix:
        weight = _numbers(linear.weight)
        return self._matrix(weight, _numbers(linear.bias), *weight.shape)

    def _matrix(
        self, weight: Floats, bias: Floats, outputs: int, inputs: int, padding_value: float = 0.0
    ) -> library.Matrix:
        """Return a padded matrix. padding_value: the bias of the padding outputs."""
        biases = np.full(padded(outputs), padding_value, np.float32)
        biases[:outputs] = bias
        return self._packed(_padded(weight, padded(outputs), padded(inputs)), biases)

    def _packed(self, weight: Floats, bias: Floats) -> library.Matrix:
        return library.Matrix(self._keep(weight), self._keep(bias), *weight.shape)

    def _around(self, residual: Residual) -> library.Norm:
        if not residual.connected:
            raise UnsupportedModelError("the native engine requires residual connections, but residual is false")
        return self._norm(residual.norm)

    def _norm(self, norm: nn.Module) -> library.Norm:
        if isinstance(norm, LayerNorm):
            kind, offset = library.LAYER_NORM, norm.bias
        elif isinstance(norm, RMSNorm):
            kind, offset = library.RMS_NORM, None
        else:
            raise UnsupportedModelError(
                f"the native engine supports only layer norm and RMS norm, but this model has a {type(norm).__name__}"
            )
        (width,) = norm.normalized_shape
        parameters = [
            None if each is None else self._keep(_padded(_numbers(each), padded(width)))
            for each in (norm.weight, offset)
        ]
        return library.Norm(*parameters, float(norm.eps or 0.0), kind, width, padded(width))

    def keep(self, array: Floats) -> c_void_p:
        """Return a pointer to the array, which stays alive as long as this object."""
        return self._keep(array)

    def _keep(self, array: Floats) -> c_void_p:
        array = np.ascontiguousarray(array, np.float32)
        self._arrays.append(array)
        return c_void_p(array.ctypes.data)


def _attention(attention: nn.Module, packing: Packing) -> library.Attention:
    if type(attention) is not SoftAttention:
        raise UnsupportedModelError(
            f"the native engine supports only soft attention, but this model has {type(attention).__name__}"
        )
    config, scorer, relation = attention.config, attention.scorer, attention.relation
    if config.normaliser != "softmax":
        raise UnsupportedModelError(
            f"the native engine supports only attention with softmax, but normaliser is {config.normaliser}"
        )
    if not config.projections or attention.combine != "project":
        raise UnsupportedModelError(
            "the native engine requires heads with input and output projections, which this model does not have"
        )
    if type(scorer) not in (ScaledDot, Dot):
        raise UnsupportedModelError(
            f"the native engine supports only scaled_dot and dot scorers, but this model has {type(scorer).__name__}"
        )
    if relation is not None and type(relation) not in (Rotary, Alibi):
        raise UnsupportedModelError(
            "the native engine supports only rotary positions and ALiBi inside attention, but this model has "
            f"{type(relation).__name__}"
        )
    heads = attention.heads
    key = attention.key.out_features // heads
    value = key if config.tie_keys_and_values else attention.value.out_features // heads
    slopes = packing.keep(_numbers(relation.slopes)) if isinstance(relation, Alibi) else None
    scale = key**-0.5 if isinstance(scorer, ScaledDot) else 1.0
    return library.Attention(heads, padded(key), padded(value), isinstance(relation, Rotary), scale, slopes)


def token_vectors(embedding: Embedding) -> Floats:
    """Return the first layer's input for each token, without positions: (V, d). Raises UnsupportedModelError."""
    tokens, positions = embedding.tokens, embedding.positions
    if not isinstance(tokens, nn.Embedding):
        raise UnsupportedModelError("the native engine supports only token inputs, but this model has vector inputs")
    vectors = tokens.weight.detach().float() * embedding.scale
    if type(positions) is Concatenated:
        vectors = vectors @ positions.back.weight.detach().float()[:, : vectors.size(1)].T
    elif type(positions) not in (PositionEmbedding, Added):
        raise UnsupportedModelError(f"the native engine does not support {type(positions).__name__} positions")
    if isinstance(getattr(positions, "encoding", None), Fraction):
        raise UnsupportedModelError("the native engine does not support fraction positions")
    return _numbers(vectors)


class PositionTables:
    """Tables of position vectors and rotary angles, which grow with the longest input."""

    def __init__(self, stack: TransformerEncoder | TransformerDecoder) -> None:
        first: Any = stack.layers[0]
        attention = first.self_attention
        self._embedding = stack.embedding
        relation = getattr(attention, "relation", None)
        self._rotary = relation if isinstance(relation, Rotary) else None
        self._width = 0 if self._rotary is None else attention.key.out_features // attention.heads
        self._length = 0
        self._vectors: Floats | None = None
        self._angles: Floats | None = None

    def table(self, length: int) -> library.Positions:
        """Return tables for at least `length` positions. The returned arrays are never modified."""
        if length > self._length:
            limit, size = self._embedding.positions.limit, max(256, 1 << (length - 1).bit_length())
            self._length = size if limit is None else min(size, limit)
            self._fill()
        arrays = self._vectors, self._angles
        vectors, angles = (None if each is None else c_void_p(each.ctypes.data) for each in arrays)
        table = library.Positions(vectors, angles, self._width if self._angles is not None else 0, self._length)
        table.arrays = arrays
        return table

    @torch.no_grad()
    def _fill(self) -> None:
        positions, width = self._embedding.positions, self._embedding.tokens.embedding_dim
        if type(positions) is not PositionEmbedding:
            zeros = torch.zeros(1, self._length, width, device=self._embedding.tokens.weight.device)
            vectors = positions.embed(zeros, 0, None)[0]  # (L, width)
            self._vectors = np.ascontiguousarray(_padded(_numbers(vectors), self._length, padded(width)))
        if self._rotary is not None:
            angles = rotary_angles(self._length, self._width, self._rotary.base, torch.device("cpu"))  # (L, width / 2)
            self._angles = np.ascontiguousarray(_numbers(torch.cat((angles.cos(), angles.sin()), 1)))


def _padded(array: Floats, *shape: int) -> Floats:
    """Return the array, padded with zeros to `shape`."""
    result = np.zeros(shape, np.float32)
    result[tuple(slice(0, size) for size in array.shape)] = array
    return result


def _numbers(tensor: Tensor) -> Floats:
    """Return the tensor as float32 on the CPU. Raises ModelError unless all values are finite."""
    array: Floats = tensor.detach().float().cpu().numpy()
    if not np.isfinite(array).all():
        raise ModelError("the model's weights contain NaN or infinity: its parameters are damaged or have diverged")
    return array
