"""Converts parameters between Marian and dragoman: their names, the order of vocabulary rows, and tied tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.marian.architecture import MarianSettings
from dragoman.exchange.huggingface.marian.vocabulary import ids_in_marian_order
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.embedding import IMPOSSIBLE_BIAS
from dragoman.nn.positions.sinusoidal import sinusoids
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer

SHARED, ENCODER, DECODER = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
)
PROJECTION, BIAS = "lm_head.weight", "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
OUR_SOURCE, OUR_TARGET = "encoder.embedding.tokens.weight", "decoder.embedding.tokens.weight"
OUR_PROJECTION, OUR_BIAS = "decoder.projection.weight", "decoder.projection.bias"

_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
_FEEDFORWARD = {"feedforward.inner": "fc1", "feedforward.outer": "fc2", "around_feedforward.norm": "final_layer_norm"}
_PARTS = {
    "encoder": {
        **{f"self_attention.{ours}": f"self_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
        "around_attention.norm": "self_attn_layer_norm",
        **_FEEDFORWARD,
    },
    "decoder": {
        **{f"self_attention.{ours}": f"self_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
        "around_self_attention.norm": "self_attn_layer_norm",
        **{f"cross_attention.{ours}": f"encoder_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
        "around_cross_attention.norm": "encoder_attn_layer_norm",
        **_FEEDFORWARD,
    },
}
_MAX_LISTED = 20
_TOLERANCE = 1e-3
"""The tolerance for sines that were stored in half precision."""


def layer_names(layers: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield dragoman's name and Marian's name of every parameter inside layers.

    layers: the numbers of layers of the `encoder` and `decoder`.
    """
    for side, count in layers.items():
        for layer in range(count):
            for ours, theirs in _PARTS[side].items():
                for kind in ("weight", "bias"):
                    yield f"{side}.layers.{layer}.{ours}.{kind}", f"model.{side}.layers.{layer}.{theirs}.{kind}"


@dataclass(frozen=True)
class Tables:
    """The tensors with one row per vocabulary entry, in Marian's order. Tied tables are the same tensor.

    source: (V_source, d), target, projection: (V_target, d), bias: (V_target).
    """

    source: Tensor
    target: Tensor
    projection: Tensor
    bias: Tensor


class MarianParameters:
    """The parameters of a Hugging Face folder, checked against its settings."""

    def __init__(self, tensors: Mapping[str, Tensor], settings: MarianSettings, path: Path) -> None:
        """Raises ModelError with a list of the parameters that are missing, unknown, or have a wrong shape or type."""
        self._tensors, self._settings, self._path = dict(tensors), settings, path
        layers = {"encoder": settings.encoder_layers, "decoder": settings.decoder_layers}
        # a damaged file may specify billions of layers, whose names would fill the memory
        self._names = {} if sum(layers.values()) > len(tensors) else dict(layer_names(layers))
        self._check()
        self.tables = self._tables()
        self._check_positions()

    @property
    def layers(self) -> dict[str, Tensor]:
        """All parameters inside layers, by dragoman's names."""
        return {ours: self._tensors[theirs] for ours, theirs in self._names.items()}

    def _check(self) -> None:
        settings, width = self._settings, self._settings.d_model
        if not self._names:
            raise ModelError(f"{self._path} has far fewer parameters than the layers in config.json")
        expected: dict[str, tuple[int, ...]] = {}
        for name in self._names.values():
            inner = settings.encoder_ffn_dim if name.startswith("model.encoder.") else settings.decoder_ffn_dim
            first = inner if ".fc1." in name else width
            second = () if name.endswith("bias") or "norm" in name else (inner if ".fc2." in name else width,)
            expected[name] = (first, *second)
        wrong = [f"missing: {name} {size}" for name, size in expected.items() if name not in self._tensors]
        optional: dict[str, tuple[int, ...]] = {
            SHARED: (settings.vocab_size, width),
            ENCODER: (settings.vocab_size, width),
            DECODER: (settings.target_size, width),
            PROJECTION: (settings.target_size, width),
            BIAS: (1, settings.target_size),
            **dict.fromkeys(POSITIONS, (settings.max_position_embeddings, width)),
        }
        for name, tensor in self._tensors.items():
            size = expected.get(name, optional.get(name))
            if size is None:
                wrong.append(f"unknown: {name} {tuple(tensor.shape)}")
            elif tuple(tensor.shape) != size:
                wrong.append(f"wrong shape: {name} is {tuple(tensor.shape)}, config.json implies {size}")
            elif not tensor.is_floating_point():
                wrong.append(f"wrong type: {name} is {tensor.dtype}")
        if wrong:
            more = [f"… and {len(wrong) - _MAX_LISTED} more"] if len(wrong) > _MAX_LISTED else []
            raise ModelError(
                f"{self._path} does not fit its config.json ({len(wrong)} differences):\n  "
                + "\n  ".join([*wrong[:_MAX_LISTED], *more])
            )

    def _tables(self) -> Tables:
        """Return the tables, tied as in Hugging Face.

        If embeddings are shared but not tied, all three tables may differ.
        """
        settings = self._settings
        zeros = torch.zeros(1, settings.target_size)
        bias = self._tensors.get(BIAS, zeros)[0]
        if settings.share_encoder_decoder_embeddings and settings.tie_word_embeddings:
            table = self._tied(SHARED, ENCODER, DECODER, PROJECTION)
            return Tables(table, table, table, bias)
        shared = (SHARED,) if settings.share_encoder_decoder_embeddings else ()
        source = self._first(ENCODER, *shared)
        if settings.tie_word_embeddings:
            target = self._tied(DECODER, PROJECTION)
            return Tables(source, target, target, bias)
        target = self._first(DECODER, *shared)
        if shared and torch.equal(source, target):
            target = source
        return Tables(source, target, self._first(PROJECTION), bias)

    def _first(self, *names: str) -> Tensor:
        for name in names:
            if name in self._tensors:
                return self._tensors[name]
        raise ModelError(f"{self._path} has no {' and no '.join(names)}")

    def _tied(self, *names: str) -> Tensor:
        """Return the table that several parameters share. Raises ModelError if these parameters differ."""
        table = self._first(*names)
        for name in names:
            if name in self._tensors and not torch.equal(self._tensors[name], table):
                raise ModelError(f"{self._path}: {name} differs from the table to which config.json ties it")
        return table

    def _check_positions(self) -> None:
        """Raise ModelError if stored positions, which older folders contain, differ from the computed sinusoids."""
        for name in POSITIONS:
            if (stored := self._tensors.get(name)) is not None:
                computed = sinusoids(len(stored), stored.size(1), layout="halves")
                if not torch.allclose(stored.float(), computed, rtol=0, atol=_TOLERANCE):
                    raise ModelError(f"{self._path}: {name} has positions that are not sines and cosines")


def from_marian(theirs: MarianParameters, model: ModelConfig, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """Return dragoman's parameters by name, with Marian's dtypes."""
    source, target = _sentencepiece(tokenizers)
    tables = theirs.tables
    parameters = {OUR_SOURCE: _to_our_rows(tables.source, source, 0.0)}
    if not model.tie_embeddings:
        parameters[OUR_TARGET] = _to_our_rows(tables.target, target, 0.0)
    if not model.tie_projection:
        parameters[OUR_PROJECTION] = _to_our_rows(tables.projection, target, 0.0)
    if model.projection_bias:
        parameters[OUR_BIAS] = _to_our_rows(tables.bias, target, IMPOSSIBLE_BIAS)
    return parameters | theirs.layers


def needs_bias(tokenizers: Tokenizers, bias: Tensor) -> bool:
    """Return whether dragoman's projection needs a bias.

    This is the case if Marian's bias is not zero, or if Marian's vocabulary has no separate entry for padding.
    """
    _, target = _sentencepiece(tokenizers)
    return bool(bias.any()) or len(ids_in_marian_order(target)) < target.size


def to_marian(ours: Mapping[str, Tensor], model: ModelConfig, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """Return Marian's parameters by name. As in Hugging Face, tied tables are saved once."""
    source, target = _sentencepiece(tokenizers)
    source_table = _to_marian_rows(ours[OUR_SOURCE], source)
    target_table = source_table if model.tie_embeddings else _to_marian_rows(ours[OUR_TARGET], target)
    tables = {SHARED: source_table} if model.tie_embeddings else {ENCODER: source_table, DECODER: target_table}
    if not model.tie_projection:
        if model.tie_embeddings:  # Hugging Face then treats them as separate tables
            tables |= {ENCODER: source_table.clone(), DECODER: source_table.clone()}
        tables[PROJECTION] = _to_marian_rows(ours[OUR_PROJECTION], target)
    zeros = torch.zeros(target.size, dtype=target_table.dtype)
    tables[BIAS] = _to_marian_rows(ours.get(OUR_BIAS, zeros), target)[None]
    layers = {
        side: stack.layers
        for side, stack in (("encoder", model.encoder), ("decoder", model.decoder))
        if isinstance(stack, TransformerEncoderConfig | TransformerDecoderConfig)
    }
    return tables | {theirs: ours[name] for name, theirs in layer_names(layers)}


def _sentencepiece(tokenizers: Tokenizers) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    source, target = tokenizers.source, tokenizers.target
    assert isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer)
    return source, target


def _to_our_rows(table: Tensor, tokenizer: SentencePieceTokenizer, padding: float) -> Tensor:
    """Return `table` with its rows in the order of dragoman's vocabulary.

    padding: the value of the row for dragoman's padding if Marian has no such row.
    """
    order = ids_in_marian_order(tokenizer)
    reordered = table.new_full((tokenizer.size, *table.shape[1:]), padding)
    reordered[torch.tensor(order)] = table
    return reordered


def _to_marian_rows(table: Tensor, tokenizer: SentencePieceTokenizer) -> Tensor:
    """Return `table` with its rows in the order of Marian's vocabulary."""
    return table[torch.tensor(ids_in_marian_order(tokenizer))]
