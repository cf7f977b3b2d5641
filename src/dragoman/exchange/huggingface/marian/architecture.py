"""Converts the architecture of Marian models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.base.log import info, warn
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import FolderSettings, parse_json_settings, parse_section
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.seq2seq import ModelConfig

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Dragoman's activation names, by Hugging Face's names."""

DEFAULT_POSITIONS = 512
"""The length limit that is written for a model without a limit, as in OPUS-MT."""

_NOT_COMPARED = ("preset", "embeddings.", "dropout.embedding", "positions.limit")
"""Prefixes of settings that affect training only or are written separately."""

Count = Field(ge=1)
Rate = Field(0.0, ge=0, lt=1)


class MarianSettings(FolderSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    The last four keys must have their default values. Other values describe Marian models that Hugging Face's class
    cannot compute, although it has the keys.
    """

    vocab_size: int = Count
    decoder_vocab_size: int | None = None
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
    decoder_start_token_id: int = Field(ge=0)
    scale_embedding: bool = False
    pad_token_id: int = Field(ge=0)
    eos_token_id: int = Field(ge=0)
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    add_final_layer_norm: Literal[False] = False
    static_position_embeddings: Literal[True] = True

    @property
    def target_size(self) -> int:
        """The size of the target vocabulary."""
        return self.decoder_vocab_size or self.vocab_size


def read_settings(content: Mapping[str, Any], path: Path) -> MarianSettings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    settings = parse_json_settings(content, MarianSettings, path)
    if settings.activation_function not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ModelError(f"{path}: unknown activation_function {settings.activation_function!r} (supported: {known})")
    if settings.encoder_layerdrop or settings.decoder_layerdrop:
        info(f"{path}: layer drop is ignored, because it affects training only")
    return settings


def model_section(settings: MarianSettings, tie_embeddings: bool, projection_bias: bool, path: Path) -> ModelConfig:
    """Return the `model` section for a Marian model. Raises ModelError if its settings are inconsistent."""

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
        "positions": {"kind": "sinusoidal", "layout": "halves", "limit": settings.max_position_embeddings},
        "dropout": {
            "embedding": settings.dropout,
            "residual": settings.dropout,
            "attention": settings.attention_dropout,
            "feedforward": settings.activation_dropout,
        },
        "tie_embeddings": tie_embeddings,
        "tie_projection": settings.tie_word_embeddings,
        "projection_bias": projection_bias,
        "scale_embeddings": settings.scale_embedding,
    }
    return parse_section(section, ModelConfig, path)


def config_json(model: ModelConfig, sizes: tuple[int, int]) -> dict[str, Any]:
    """Return the content of `config.json` without the ids of special symbols.

    sizes: the sizes of the source and target vocabularies. Raises ModelError with the name and value of every setting
    that Marian does not support.
    """
    encoder, decoder = model.encoder, model.decoder
    for side, stack in (("encoder", encoder), ("decoder", decoder)):
        if not isinstance(stack, TransformerEncoderConfig | TransformerDecoderConfig):
            raise ModelError(f"Marian cannot express this model: model.{side}.kind is {stack.kind}, not transformer")
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    content = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1],
        "max_position_embeddings": getattr(model.positions, "limit", None) or DEFAULT_POSITIONS,
        "num_hidden_layers": encoder.layers,
        **_stack_json("encoder", encoder),
        **_stack_json("decoder", decoder),
        "activation_function": encoder.activation if encoder.activation in ACTIVATIONS else "relu",
        "d_model": model.width,
        "dropout": model.dropout.residual,
        "attention_dropout": model.dropout.attention,
        "activation_dropout": model.dropout.feedforward,
        "scale_embedding": model.scale_embeddings,
        "share_encoder_decoder_embeddings": model.tie_embeddings,
        "tie_word_embeddings": model.tie_projection,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
    }
    _check_round_trip(model, content)
    if model.dropout.embedding != model.dropout.residual:
        warn(
            "Marian has a single dropout rate for residuals and embeddings: writing the rate of residuals, "
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


def _check_round_trip(model: ModelConfig, content: Mapping[str, Any]) -> None:
    """Raise ModelError unless `content` is converted back to the same model, so that no setting is overlooked."""
    ids = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 0}
    read = model_section(
        MarianSettings.model_validate({**content, **ids}), model.tie_embeddings, model.projection_bias, Path(CONFIG)
    )
    if model.target_positions == model.positions:
        model = model.model_copy(update={"target_positions": None})
    check_same_settings(model, read, "Marian", _NOT_COMPARED)
