"""The names of BART's tensors in Hugging Face's files."""

import re
from collections.abc import Sequence

import torch

from dragoman.exchange.huggingface.weights import LAYER, Weight, WeightTable, linear, repeat
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.embedding import IMPOSSIBLE_BIAS

PREFIX = "model."
BIAS = "final_logits_bias"
POSITIONS_BEFORE_TEXT = 2
"""Number of rows of the position tables before the first position."""

_SHARED = "model.shared.weight"
_TABLES = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
_PROJECTION = "lm_head.weight"
_OUR_TABLES = "encoder.embedding.tokens.weight", "decoder.embedding.tokens.weight"
_BODY = re.compile(r"(?:shared|encoder|decoder)\.")
VERSIONS = {f"model.{side}.version": torch.tensor([3]) for side in ("encoder", "decoder")}
"""The version of fairseq's stacks, which files converted from fairseq may contain."""


def _attention(theirs: str, ours: str) -> list[Weight]:
    names = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    return [each for name, own in names.items() for each in linear(f"{theirs}.{name}", f"{ours}.{own}")]


def layer_weights(side: str, layers: int) -> list[Weight]:
    """Return the weights of the layers of one side, `encoder` or `decoder`."""
    theirs, ours = f"model.{side}.layers.{LAYER}", f"{side}.layers.{LAYER}"
    around = "around_attention" if side == "encoder" else "around_self_attention"
    layer = [
        *_attention(f"{theirs}.self_attn", f"{ours}.self_attention"),
        *linear(f"{theirs}.self_attn_layer_norm", f"{ours}.{around}.norm"),
        *linear(f"{theirs}.fc1", f"{ours}.feedforward.inner"),
        *linear(f"{theirs}.fc2", f"{ours}.feedforward.outer"),
        *linear(f"{theirs}.final_layer_norm", f"{ours}.around_feedforward.norm"),
    ]
    if side == "decoder":
        layer += _attention(f"{theirs}.encoder_attn", f"{ours}.cross_attention")
        layer += linear(f"{theirs}.encoder_attn_layer_norm", f"{ours}.around_cross_attention.norm")
    return list(repeat(layer, layers))


def _stack(side: str, layers: int) -> list[Weight]:
    positions = f"{side}.embedding.positions.encoding.table"
    return [
        Weight(f"model.{side}.embed_positions.weight", (positions,), skipped=POSITIONS_BEFORE_TEXT),
        *linear(f"model.{side}.layernorm_embedding", f"{side}.embedding.norm"),
        *layer_weights(side, layers),
    ]


def shared_table() -> Weight:
    """Return the table that both sides and the projection share."""
    return Weight(_SHARED, (_OUR_TABLES[0],), rows=True, aliases=(*_TABLES, _PROJECTION))


def weight_table(model: ModelConfig, order: Sequence[int], size: int) -> WeightTable:
    """Return the table for a model, in which the bias of the logits is a vector. order, size: as in `WeightTable`."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    if model.tie_embeddings:
        tables = [shared_table()]
    else:  # Hugging Face stores a shared table as well, but does not use it
        names = zip(_TABLES, _OUR_TABLES, strict=True)
        tables = [Weight(theirs, (ours,), rows=True, copies=(_SHARED,)) for theirs, ours in names]
        tables.append(Weight(_PROJECTION, ("decoder.projection.weight",), rows=True))
    if model.projection_bias:
        tables.append(Weight(BIAS, ("decoder.projection.bias",), rows=True, fill=IMPOSSIBLE_BIAS))
    return WeightTable(
        [*tables, *_stack("encoder", encoder.layers), *_stack("decoder", decoder.layers)],
        order,
        size,
        constants=VERSIONS,
        rename=current_name,
    )


def current_name(name: str) -> str:
    """Return the name of a tensor in files of a BartForConditionalGeneration, given its name in any file."""
    return PREFIX + name if _BODY.match(name) else name
