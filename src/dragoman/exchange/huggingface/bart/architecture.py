"""Converts the architecture of BART models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.base.log import info, warn
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    FolderSettings,
    check_activation,
    check_architecture,
    parse_json_settings,
    parse_section,
)
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.seq2seq import ModelConfig

ARCHITECTURES = ("BartForConditionalGeneration", "BartModel")
_NOT_COMPARED = ("preset", "embeddings.", "dropout.embedding")

Count = Field(ge=1)
Rate = Field(0.0, ge=0, lt=1)


class BartSettings(FolderSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    The last keys must have their default values. Other values describe models that Hugging Face's class cannot compute,
    although older files have the keys.
    """

    vocab_size: int = Field(50265, ge=1)
    max_position_embeddings: int = Field(1024, ge=1)
    encoder_layers: int = Field(12, ge=1)
    encoder_ffn_dim: int = Field(4096, ge=1)
    encoder_attention_heads: int = Field(16, ge=1)
    decoder_layers: int = Field(12, ge=1)
    decoder_ffn_dim: int = Field(4096, ge=1)
    decoder_attention_heads: int = Field(16, ge=1)
    encoder_layerdrop: float = Rate
    decoder_layerdrop: float = Rate
    activation_function: str = "gelu"
    d_model: int = Field(1024, ge=2)
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = Rate
    activation_dropout: float = Rate
    scale_embedding: bool = False
    pad_token_id: int = 1
    bos_token_id: int = 0
    eos_token_id: int = 2
    decoder_start_token_id: int = 2
    tie_word_embeddings: bool = True
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[True] = True
    add_final_layer_norm: Literal[False] = False
    static_position_embeddings: Literal[False] = False
    add_bias_logits: Literal[False] = False


def read_settings(content: Mapping[str, Any], path: Path) -> BartSettings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    settings = parse_json_settings(content, BartSettings, path)
    check_activation(settings.activation_function, "activation_function", path)
    check_architecture(settings, ARCHITECTURES, path)
    if settings.decoder_start_token_id != settings.eos_token_id:
        raise ModelError(
            f"{path}: decoder_start_token_id is {settings.decoder_start_token_id}, but only decoders that start with "
            f"the end symbol, {settings.eos_token_id}, are supported"
        )
    if settings.encoder_layerdrop or settings.decoder_layerdrop:
        info(f"{path}: layer drop is ignored, because it affects training only")
    return settings


def model_section(settings: BartSettings, projection_bias: bool, excluded: Sequence[int], path: Path) -> ModelConfig:
    """Return the `model` section for a BART model.

    projection_bias: whether the bias of the logits is not zero. excluded: ids of the special symbols that BART's
    vocabulary does not have. Raises ModelError if the settings are inconsistent.
    """

    def stack(side: str) -> dict[str, Any]:
        return {
            "kind": "transformer",
            "layers": getattr(settings, f"{side}_layers"),
            "heads": getattr(settings, f"{side}_attention_heads"),
            "feedforward": getattr(settings, f"{side}_ffn_dim"),
            "activation": ACTIVATIONS[settings.activation_function],
        }

    section = {
        "preset": None,
        "width": settings.d_model,
        "encoder": stack("encoder"),
        "decoder": stack("decoder"),
        "positions": {"kind": "learned", "limit": settings.max_position_embeddings},
        "dropout": {
            "embedding": settings.dropout,
            "residual": settings.dropout,
            "attention": settings.attention_dropout,
            "feedforward": settings.activation_dropout,
        },
        "tie_embeddings": settings.tie_word_embeddings,
        "tie_projection": settings.tie_word_embeddings,
        "projection_bias": projection_bias,
        "scale_embeddings": settings.scale_embedding,
        "embedding_norm": {"kind": "layer"},
        "start_symbol": "eos",
        "excluded_tokens": list(excluded),
    }
    return parse_section(section, ModelConfig, path)


def config_json(model: ModelConfig, size: int, excluded: Sequence[int]) -> dict[str, Any]:
    """Return the content of `config.json` without the ids of special symbols.

    size: number of entries of BART's vocabulary. excluded: as in `model_section`. Raises
    ModelError with the name and value of every setting that BART does not support.
    """
    encoder, decoder = model.encoder, model.decoder
    for side, stack in (("encoder", encoder), ("decoder", decoder)):
        if not isinstance(stack, TransformerEncoderConfig | TransformerDecoderConfig):
            raise ModelError(f"BART cannot express this model: model.{side}.kind is {stack.kind}, not transformer")
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    content = {
        "architectures": [ARCHITECTURES[0]],
        "model_type": "bart",
        "is_encoder_decoder": True,
        "vocab_size": size,
        "max_position_embeddings": getattr(model.positions, "limit", None) or 1024,
        "num_hidden_layers": encoder.layers,
        **_stack_json("encoder", encoder),
        **_stack_json("decoder", decoder),
        "activation_function": ACTIVATION_NAMES.get(encoder.activation, "gelu"),
        "d_model": model.width,
        "dropout": model.dropout.residual,
        "attention_dropout": model.dropout.attention,
        "activation_dropout": model.dropout.feedforward,
        "scale_embedding": model.scale_embeddings,
        "tie_word_embeddings": model.tie_projection,
    }
    read = model_section(BartSettings.model_validate(content), model.projection_bias, excluded, Path(CONFIG))
    if model.target_positions == model.positions:
        model = model.model_copy(update={"target_positions": None})
    check_same_settings(model, read, "BART", _NOT_COMPARED)
    if model.dropout.embedding != model.dropout.residual:
        warn(
            "BART has a single dropout rate for residuals and embeddings: writing the rate of residuals, "
            f"{model.dropout.residual}"
        )
    return content


def _stack_json(side: str, stack: TransformerEncoderConfig | TransformerDecoderConfig) -> dict[str, Any]:
    return {
        f"{side}_layers": stack.layers,
        f"{side}_ffn_dim": stack.feedforward,
        f"{side}_attention_heads": stack.heads,
        f"{side}_layerdrop": 0.0,
    }
