"""The names of GPT-2's tensors in Hugging Face's files."""

import re
from collections.abc import Sequence

import torch

from dragoman.exchange.huggingface.weights import LAYER, Weight, WeightTable, linear, repeat
from dragoman.models.families.transformer import TransformerDecoderConfig
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.nn.positions.learned import LearnedConfig

PREFIX = "transformer."
EMBEDDINGS, PROJECTION = "transformer.wte.weight", "lm_head.weight"
TOKENS = "decoder.embedding.tokens.weight"

_THEIRS, _OURS = f"transformer.h.{LAYER}", f"decoder.layers.{LAYER}"
_ATTENTION = tuple(f"{_OURS}.self_attention.{name}" for name in ("query", "key", "value"))
_LAYER = (
    *linear(f"{_THEIRS}.ln_1", f"{_OURS}.around_self_attention.norm"),
    *linear(f"{_THEIRS}.attn.c_attn", *_ATTENTION, transposed=True),
    *linear(f"{_THEIRS}.attn.c_proj", f"{_OURS}.self_attention.output", transposed=True),
    *linear(f"{_THEIRS}.ln_2", f"{_OURS}.around_feedforward.norm"),
    *linear(f"{_THEIRS}.mlp.c_fc", f"{_OURS}.feedforward.inner", transposed=True),
    *linear(f"{_THEIRS}.mlp.c_proj", f"{_OURS}.feedforward.outer", transposed=True),
)
_BODY = re.compile(r"(?:wte|wpe|ln_f|h\.\d+)\.")
_MASKED_SCORE = -10_000


def weight_table(model: LanguageModelConfig, order: Sequence[int], size: int) -> WeightTable:
    """Return the table for a model. order, size: as in `WeightTable`."""
    decoder, positions = model.decoder, model.positions
    assert isinstance(decoder, TransformerDecoderConfig) and isinstance(positions, LearnedConfig)
    tables = [Weight(EMBEDDINGS, (TOKENS,), rows=True, aliases=(PROJECTION,) if model.tie_projection else ())]
    if not model.tie_projection:
        tables.append(Weight(PROJECTION, ("decoder.projection.weight",), rows=True))
    return WeightTable(
        [
            *tables,
            Weight("transformer.wpe.weight", ("decoder.embedding.positions.encoding.table",)),
            *repeat(_LAYER, decoder.layers),
            *linear("transformer.ln_f", "decoder.norm"),
        ],
        order,
        size,
        constants=_constants(decoder.layers, positions.limit),
        rename=current_name,
    )


def _constants(layers: int, positions: int) -> dict[str, torch.Tensor]:
    """Return the causal mask of each layer and the score of masked positions, which older files contain."""
    mask = torch.ones(positions, positions, dtype=torch.bool).tril().flatten().long()
    masked = torch.tensor([_MASKED_SCORE])
    names = [f"transformer.h.{layer}.attn" for layer in range(layers)]
    return {f"{name}.bias": mask for name in names} | {f"{name}.masked_bias": masked for name in names}


def current_name(name: str) -> str:
    """Return the name of a tensor in files of a GPT2LMHeadModel, given its name in any file."""
    return PREFIX + name if _BODY.match(name) else name
