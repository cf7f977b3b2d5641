"""The names of M2M-100's tensors in Hugging Face's files: those of BART, with a final norm per side."""

from collections.abc import Sequence

from dragoman.exchange.huggingface.bart.weights import VERSIONS, current_name, layer_weights, shared_table
from dragoman.exchange.huggingface.weights import Weight, WeightTable, linear
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig

POSITIONS = tuple(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder"))
"""Tables that older files contain although they are computed."""


def weight_table(model: ModelConfig, order: Sequence[int], size: int) -> WeightTable:
    """Return the table for a model. order, size: as in `WeightTable`."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    weights: list[Weight] = [shared_table()]
    for side, layers in (("encoder", encoder.layers), ("decoder", decoder.layers)):
        weights += [*layer_weights(side, layers), *linear(f"model.{side}.layer_norm", f"{side}.norm")]
    return WeightTable(weights, order, size, constants=VERSIONS, rename=current_name)
