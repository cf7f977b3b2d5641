"""The names of T5's tensors in Hugging Face's files."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from dragoman.exchange.huggingface.weights import LAYER, Weight, WeightTable, repeat
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig

EMBEDDINGS, PROJECTION = "shared.weight", "lm_head.weight"
TABLES = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
_OUR_EMBEDDINGS, _OUR_PROJECTION = "encoder.embedding.tokens.weight", "decoder.projection.weight"
_BIAS = "relative_attention_bias.weight"


def _attention(theirs: str, ours: str) -> list[Weight]:
    names = {"q": "query", "k": "key", "v": "value", "o": "output"}
    return [Weight(f"{theirs}.{name}.weight", (f"{ours}.{own}.weight",)) for name, own in names.items()]


def _stack(side: str, layers: int, gated: bool) -> list[Weight]:
    theirs, ours = f"{side}.block.{LAYER}.layer", f"{side}.layers.{LAYER}"
    around = "around_attention" if side == "encoder" else "around_self_attention"
    norms = [(0, around)]
    layer = _attention(f"{theirs}.0.SelfAttention", f"{ours}.self_attention")
    if side == "decoder":
        layer += _attention(f"{theirs}.1.EncDecAttention", f"{ours}.cross_attention")
        norms.append((1, "around_cross_attention"))
    last = len(norms)
    norms.append((last, "around_feedforward"))
    network = {"wi_0": "inner", "wi_1": "gate"} if gated else {"wi": "inner"}
    layer += [
        Weight(f"{theirs}.{last}.DenseReluDense.{name}.weight", (f"{ours}.feedforward.{own}.weight",))
        for name, own in {**network, "wo": "outer"}.items()
    ]
    layer += [Weight(f"{theirs}.{number}.layer_norm.weight", (f"{ours}.{name}.norm.weight",)) for number, name in norms]
    return [
        Weight(f"{side}.block.0.layer.0.SelfAttention.{_BIAS}", (f"{side}.layers.0.self_attention.relation.table",)),
        *repeat(layer, layers),
        Weight(f"{side}.final_layer_norm.weight", (f"{side}.norm.weight",)),
    ]


def weight_table(model: ModelConfig, order: Sequence[int], size: int) -> WeightTable:
    """Return the table for a model. order, size: as in `WeightTable`."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    tied = (PROJECTION,) if model.tie_projection else ()
    tables = [Weight(EMBEDDINGS, (_OUR_EMBEDDINGS,), rows=True, aliases=(*TABLES, *tied))]
    if not model.tie_projection:
        tables.append(Weight(PROJECTION, (_OUR_PROJECTION,), rows=True))
    gated = encoder.activation in ("geglu_tanh", "swiglu")
    return WeightTable(
        [*tables, *_stack("encoder", encoder.layers, gated), *_stack("decoder", decoder.layers, gated)],
        order,
        size,
        unused=lambda name: name == f"decoder.block.0.layer.1.EncDecAttention.{_BIAS}",
    )


def is_tied(tensors: Mapping[str, Tensor], scaled: bool) -> bool:
    """Return whether the projection is the table of the embeddings.

    scaled: whether states are scaled before the projection. Files of scaled models may contain the projection as well,
    and a file may contain the embeddings only under the name of the projection.
    """
    others = [tensors[name] for name in (EMBEDDINGS, *TABLES) if name in tensors]
    return scaled or PROJECTION not in tensors or not others or bool(tensors[PROJECTION].equal(others[0]))
