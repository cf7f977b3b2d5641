"""Converts dragoman's Transformer to CTranslate2's `TransformerSpec` (`ctranslate2.specs`), which can be saved to disk.

CTranslate2 4.7 or newer is required, whose encoders support rotary positions. CTranslate2 computes the queries, keys
and values of self-attention in one product, and the keys and values of cross-attention in another. Positions are
written as explicit tables, because CTranslate2's built-in sinusoids count from 1 and have different wavelengths.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.packages import import_optional
from dragoman.exchange.ctranslate2.expressible import check_expressible, epsilon
from dragoman.models.families.transformer import DecoderLayer, EncoderLayer, TransformerDecoder, TransformerEncoder
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.scorers import Dot
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.normalisation import RMSNormConfig
from dragoman.nn.positions.absolute import Added
from dragoman.nn.positions.relative import Relative
from dragoman.nn.positions.rotary import Rotary
from dragoman.nn.positions.scheme import RelativePositions
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

POSITIONS = 4096
"""Number of rows in position tables without a length limit, and therefore the maximum length in tokens."""

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "swish": "SWISH", "swiglu": "SWISH"}
Array = NDArray[np.float32]
Stack = TransformerEncoder | TransformerDecoder


def library() -> Any:
    """Return the `ctranslate2` module. Raises ConfigError if it is not installed."""
    return import_optional("ctranslate2", "fast")


def specification(model: Seq2Seq, config: ModelConfig, tokenizers: Tokenizers) -> Any:
    """Return a float32 `TransformerSpec` of a model, with its vocabularies.

    Raises ModelError as `check_expressible` does, and ConfigError if CTranslate2 is not installed.
    """
    check_expressible(config, model.vectors is not None)
    specs = library().specs
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder) and isinstance(decoder, TransformerDecoder)
    encoder_spec = specs.TransformerEncoderSpec(num_layers=len(encoder.layers), **_shape(config.encoder, encoder))
    decoder_spec = specs.TransformerDecoderSpec(num_layers=len(decoder.layers), **_shape(config.decoder, decoder))
    _fill_stack(encoder_spec, encoder_spec.embeddings[0], encoder)
    _fill_stack(decoder_spec, decoder_spec.embeddings, decoder)
    decoder_spec.projection.weight = _array(decoder.projection.weight)
    if decoder.projection.bias is not None:
        decoder_spec.projection.bias = _array(decoder.projection.bias)
    spec = specs.TransformerSpec(encoder_spec, decoder_spec)
    spec.config.layer_norm_epsilon = epsilon(config)
    spec.config.add_source_bos, spec.config.add_source_eos = False, True
    spec.config.bos_token = spec.config.decoder_start_token = SPECIAL_SYMBOLS[BOS]
    spec.config.eos_token, spec.config.unk_token = SPECIAL_SYMBOLS[EOS], SPECIAL_SYMBOLS[UNK]
    spec.register_source_vocabulary(token_names(tokenizers.source))
    spec.register_target_vocabulary(token_names(tokenizers.target))
    return spec


def token_names(tokenizer: Tokenizer) -> list[str]:
    """Return CTranslate2's token for each id: the id's symbol, followed by the id if an earlier symbol is the same."""
    tokens: dict[str, None] = {}
    for number, symbol in enumerate(tokenizer.symbols):
        token = symbol
        while token in tokens:
            token = f"{token}#{number}"
        tokens[token] = None
    return list(tokens)


def positions(model: Seq2Seq) -> int | None:
    """Return the maximum length in tokens, including the end-of-sentence or start symbol.

    Returns None if the model has no position tables.
    """
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder) and isinstance(decoder, TransformerDecoder)
    lengths = [_length(encoder), _length(decoder)]
    return min((length for length in lengths if length is not None), default=None)


def _shape(config: Any, stack: Stack) -> dict[str, Any]:
    """Return the arguments of the specification of an encoder or decoder."""
    relation = _relation(stack)
    shape: dict[str, Any] = {
        "num_heads": config.heads,
        "pre_norm": config.norm == "pre",
        "activation": library().specs.Activation[_ACTIVATIONS[config.activation]],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": isinstance(config.normalisation, RMSNormConfig),
        "relative_position": isinstance(relation, Relative),
    }
    if isinstance(relation, Rotary):
        shape |= {"rotary_dim": 0, "rotary_interleave": True, "rotary_base": relation.base}
    return shape


def _fill_stack(spec: Any, embeddings: Any, stack: Stack) -> None:
    embeddings.weight = _array(stack.embedding.tokens.weight)
    spec.scale_embeddings = stack.embedding.scale != 1  # by √d, as `Embedding` does
    if (table := _table(stack)) is not None:
        spec.position_encodings.encodings = table
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        _fill_layer(layer_spec, layer)
    if hasattr(spec, "layer_norm"):
        _fill_norm(spec.layer_norm, stack.norm, stack.embedding.tokens.embedding_dim)


def _fill_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    attention, network = layer.self_attention, layer.feedforward
    assert isinstance(attention, SoftAttention) and isinstance(network, FeedForward)
    queries, keys, values = attention.query, attention.key, _values(attention)
    _fill_linear(spec.self_attention.linear[0], queries, keys, values)
    _fill_attention(spec.self_attention, attention)
    if isinstance(layer, EncoderLayer):
        _fill_norm(spec.self_attention.layer_norm, layer.around_attention.norm, queries.in_features)
    else:
        source = layer.cross_attention
        assert isinstance(source, SoftAttention)
        _fill_norm(spec.self_attention.layer_norm, layer.around_self_attention.norm, queries.in_features)
        _fill_linear(spec.attention.linear[0], source.query)
        _fill_linear(spec.attention.linear[1], source.key, _values(source))
        _fill_attention(spec.attention, source)
        _fill_norm(spec.attention.layer_norm, layer.around_cross_attention.norm, queries.in_features)
    _fill_linear(spec.ffn.linear_0, network.inner)
    if network.gate is not None:
        _fill_linear(spec.ffn.linear_0_noact, network.gate)
    _fill_linear(spec.ffn.linear_1, network.outer)
    _fill_norm(spec.ffn.layer_norm, layer.around_feedforward.norm, queries.in_features)


def _fill_attention(spec: Any, attention: SoftAttention) -> None:
    """Fill an attention specification, except the projections to queries, keys and values."""
    _fill_linear(spec.linear[-1], attention.output)
    width = attention.query.out_features // attention.heads
    if isinstance(attention.scorer, Dot):
        spec.queries_scale = np.float32(1.0)
    if isinstance(relation := attention.relation, Relative):
        zeros = np.zeros((2 * relation.distance + 1, width), np.float32)
        # dragoman divides scores of relative keys by √d_k for every scorer; CTranslate2 multiplies by queries_scale
        scale = 1 / sqrt(width) if isinstance(attention.scorer, Dot) else 1.0
        keys = _array(relation.key_table) * np.float32(scale) if relation.acts_on_scores else zeros
        spec.relative_position_keys = keys
        spec.relative_position_values = _array(relation.value_table) if relation.acts_on_values else zeros


def _values(attention: SoftAttention) -> nn.Linear:
    return attention.key if attention.config.tie_keys_and_values else attention.value


def _fill_linear(spec: Any, *layers: nn.Linear) -> None:
    """Fill a linear specification with the concatenated outputs of layers that have the same input."""
    spec.weight = _concatenate([layer.weight for layer in layers])
    spec.bias = _concatenate([layer.bias for layer in layers])


def _fill_norm(spec: Any, norm: nn.Module, width: int) -> None:
    """Fill a norm specification. A gain that is not learned is 1, and an offset that is not learned is 0."""
    gain, offset = getattr(norm, "weight", None), getattr(norm, "bias", None)
    spec.gamma = np.ones(width, np.float32) if gain is None else _array(gain)
    if hasattr(spec, "beta"):
        spec.beta = np.zeros(width, np.float32) if offset is None else _array(offset)


def _length(stack: Stack) -> int | None:
    """Return the number of rows in the position table; None if positions act inside attention."""
    if isinstance(stack.embedding.positions, Added):
        return stack.embedding.positions.limit or POSITIONS
    return None if _relation(stack) is not None else POSITIONS


def _relation(stack: Stack) -> RelativePositions | None:
    """Return the positions that act inside self-attention, which are the same in all layers."""
    attention = stack.layers[0].self_attention
    assert isinstance(attention, SoftAttention)
    return attention.relation


def _table(stack: Stack) -> Array | None:
    """Return the position vectors (length + 1, d); None if positions act inside attention.

    All vectors are zero for a model without positions. The last row is always zero. It belongs to the last token of a
    translation, which CTranslate2 uses as an input in forced decoding although no token follows.
    """
    length, embedding = _length(stack), stack.embedding
    if length is None:
        return None
    table = np.zeros((length + 1, embedding.tokens.embedding_dim), np.float32)
    if isinstance(embedding.positions, Added):
        table[:-1] = _array(embedding.positions.encoding(0, length, None))
    return table


def _concatenate(tensors: Sequence[Tensor]) -> Array:
    return np.concatenate([_array(tensor) for tensor in tensors])


def _array(tensor: Tensor) -> Array:
    array: Array = tensor.detach().cpu().float().contiguous().numpy()
    return array
