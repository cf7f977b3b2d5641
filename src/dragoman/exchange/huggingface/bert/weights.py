"""The names of BERT's tensors in Hugging Face's files."""

import re
from collections.abc import Sequence

import torch

from dragoman.exchange.huggingface.weights import LAYER, Weight, WeightTable, linear, repeat
from dragoman.models.families.transformer import TransformerEncoderConfig
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig

PREFIX = "bert."
POOLER = "bert.pooler.dense.weight"
EMBEDDINGS = "bert.embeddings.word_embeddings.weight"

NEXT_SENTENCE = "cls.seq_relationship.weight"
PROJECTION = "cls.predictions.decoder.weight"
BIAS, DECODER_BIAS = "cls.predictions.bias", "cls.predictions.decoder.bias"
"""Names of the bias of the projection. Without tied weights, Hugging Face stores both and uses only the second."""

_EMBEDDINGS = (
    Weight("bert.embeddings.position_embeddings.weight", ("encoder.embedding.positions.encoding.table",)),
    Weight("bert.embeddings.token_type_embeddings.weight", ("encoder.embedding.segments.weight",)),
    *linear("bert.embeddings.LayerNorm", "encoder.embedding.norm"),
)
_THEIRS, _OURS = f"bert.encoder.layer.{LAYER}", f"encoder.layers.{LAYER}"
_LAYER = (
    *linear(f"{_THEIRS}.attention.self.query", f"{_OURS}.self_attention.query"),
    *linear(f"{_THEIRS}.attention.self.key", f"{_OURS}.self_attention.key"),
    *linear(f"{_THEIRS}.attention.self.value", f"{_OURS}.self_attention.value"),
    *linear(f"{_THEIRS}.attention.output.dense", f"{_OURS}.self_attention.output"),
    *linear(f"{_THEIRS}.attention.output.LayerNorm", f"{_OURS}.around_attention.norm"),
    *linear(f"{_THEIRS}.intermediate.dense", f"{_OURS}.feedforward.inner"),
    *linear(f"{_THEIRS}.output.dense", f"{_OURS}.feedforward.outer"),
    *linear(f"{_THEIRS}.output.LayerNorm", f"{_OURS}.around_feedforward.norm"),
)
_POOLER = linear("bert.pooler.dense", "head.hidden")
_HEADS: dict[str, tuple[Weight, ...]] = {
    "none": (),
    "classification": linear("classifier", "head.output"),
    "regression": linear("classifier", "head.output"),
    "tagging": linear("classifier", "head.output"),
    "span": linear("qa_outputs", "head.output"),
    "masked_language_model": (
        *linear("cls.predictions.transform.dense", "head.transform"),
        *linear("cls.predictions.transform.LayerNorm", "head.norm"),
    ),
}
_SWAPPED = (1, 0)
"""BERT's first class of a pair is "continues", dragoman's is "does not continue"."""

_NEXT_SENTENCE = (
    *linear("bert.pooler.dense", "head.pooler"),
    Weight(NEXT_SENTENCE, ("head.next_sentence.weight",), permutation=_SWAPPED),
    Weight("cls.seq_relationship.bias", ("head.next_sentence.bias",), permutation=_SWAPPED),
)
_UNUSED = ("bert.pooler.", "cls.predictions.", "cls.seq_relationship.")
"""Prefixes of parts that a file may contain although the model's class does not use them, as in BERT's own models."""

_BODY = ("embeddings.", "encoder.", "pooler.")
_OLD_SUFFIXES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
_OLD = re.compile(r"LayerNorm\.(?:gamma|beta)$")


def weight_table(model: EncoderOnlyConfig, order: Sequence[int], size: int) -> WeightTable:
    """Return the table for a model. order, size: as in `WeightTable`."""
    assert isinstance(model.encoder, TransformerEncoderConfig)
    pooler: tuple[Weight, ...] = _POOLER if getattr(model.head, "hidden", False) else ()
    if getattr(model.head, "next_sentence", False):
        pooler = _NEXT_SENTENCE
    limit = getattr(model.positions, "limit", None) or 0
    return WeightTable(
        [*_tables(model), *_EMBEDDINGS, *repeat(_LAYER, model.encoder.layers), *pooler, *_HEADS[model.head.kind]],
        order,
        size,
        constants={
            "bert.embeddings.position_ids": torch.arange(limit),
            "bert.embeddings.token_type_ids": torch.zeros(limit, dtype=torch.int64),
        },
        rename=current_name,
        unused=lambda name: name.startswith(_UNUSED),
    )


def _tables(model: EncoderOnlyConfig) -> list[Weight]:
    """Return the weights with one row per entry of the vocabulary."""
    tokens, head = ("encoder.embedding.tokens.weight",), model.head
    if not isinstance(head, MaskedLanguageModelHeadConfig):
        return [Weight(EMBEDDINGS, tokens, rows=True)]
    bias = ("head.projection.bias",)
    if head.tied:
        return [
            Weight(EMBEDDINGS, tokens, rows=True, aliases=(PROJECTION,)),
            Weight(BIAS, bias, rows=True, aliases=(DECODER_BIAS,)),
        ]
    return [
        Weight(EMBEDDINGS, tokens, rows=True),
        Weight(PROJECTION, ("head.projection.weight",), rows=True),
        Weight(DECODER_BIAS, bias, rows=True, copies=(BIAS,)),
    ]


def current_name(name: str) -> str:
    """Return the name of a tensor in current files of models with a head, given its name in any file."""
    name = _OLD.sub(lambda match: _OLD_SUFFIXES[match[0]], name)
    return PREFIX + name if name.startswith(_BODY) else name
