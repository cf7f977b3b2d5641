"""Converts the architecture of T5 models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.base.log import warn
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import (
    FolderSettings,
    check_architecture,
    parse_json_settings,
    parse_section,
)
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.positions.bucketed import BucketedConfig
from dragoman.text.symbols import PAD

ARCHITECTURES = ("T5ForConditionalGeneration", "T5Model", "T5WithLMHeadModel")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "swish", "gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}
"""Dragoman's activations, by T5's `feed_forward_proj`."""

_NOT_COMPARED = ("preset", "embeddings.", "dropout.")

Count = Field(ge=1)


class T5Settings(FolderSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    tie_word_embeddings: false means that the states are not scaled before the projection, as in T5 v1.1. Whether the
    projection is a table of its own follows from the tensors. The last key must have its default value.
    """

    vocab_size: int = Field(32128, ge=1)
    d_model: int = Field(512, ge=2)
    d_kv: int = Field(64, ge=1)
    d_ff: int = Field(2048, ge=1)
    num_layers: int = Field(6, ge=1)
    num_decoder_layers: int | None = Field(None, ge=1)
    num_heads: int = Field(8, ge=1)
    relative_attention_num_buckets: int = Field(32, ge=4)
    relative_attention_max_distance: int = Field(128, ge=2)
    dropout_rate: float = Field(0.1, ge=0, lt=1)
    layer_norm_epsilon: float = Field(1e-6, gt=0)
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int | None = None
    is_encoder_decoder: Literal[True] = True

    @property
    def scales_output(self) -> bool:
        """Whether the states are scaled before the projection."""
        return self.tie_word_embeddings if self.scale_decoder_outputs is None else self.scale_decoder_outputs


def read_settings(content: Mapping[str, Any], path: Path) -> T5Settings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    settings = parse_json_settings(content, T5Settings, path)
    if settings.feed_forward_proj not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ModelError(f"{path}: unknown feed_forward_proj {settings.feed_forward_proj!r} (supported: {known})")
    check_architecture(settings, ARCHITECTURES, path)
    if settings.decoder_start_token_id not in (None, settings.pad_token_id):
        raise ModelError(
            f"{path}: decoder_start_token_id is {settings.decoder_start_token_id}, but only decoders that start with "
            f"padding, {settings.pad_token_id}, are supported"
        )
    return settings


def model_section(settings: T5Settings, tied: bool, path: Path) -> ModelConfig:
    """Return the `model` section for a T5 model.

    tied: whether the projection is the table of the embeddings. Raises ModelError if the settings are inconsistent.
    """
    width = {"key_width": settings.d_kv, "value_width": settings.d_kv}
    attention = {"kind": "soft", "scorer": {"kind": "dot"}, "bias": False, **width}
    stack = {
        "kind": "transformer",
        "heads": settings.num_heads,
        "attention": attention,
        "feedforward": settings.d_ff,
        "activation": ACTIVATIONS[settings.feed_forward_proj],
        "feedforward_bias": False,
        "float32_output": True,
        "norm": "pre",
        "normalisation": {"kind": "rms", "epsilon": settings.layer_norm_epsilon},
    }
    positions = {
        "kind": "bucketed",
        "buckets": settings.relative_attention_num_buckets,
        "max_distance": settings.relative_attention_max_distance,
    }
    section = {
        "preset": None,
        "width": settings.d_model,
        "encoder": {**stack, "layers": settings.num_layers},
        "decoder": {
            **stack,
            "layers": settings.num_decoder_layers or settings.num_layers,
            "cross_attention": attention,
            "scale_output": settings.scales_output,
        },
        "positions": positions,
        "target_positions": {**positions, "bidirectional": False},
        "dropout": dict.fromkeys(("embedding", "residual", "attention", "feedforward"), settings.dropout_rate),
        "tie_embeddings": True,
        "tie_projection": tied,
        "scale_embeddings": False,
        "excluded_tokens": [PAD],
    }
    return parse_section(section, ModelConfig, path)


def config_json(model: ModelConfig, size: int) -> dict[str, Any]:
    """Return the content of `config.json` without the ids of special symbols. size: of T5's vocabulary.

    Raises ModelError with the name and value of every setting that T5 does not support.
    """
    encoder, decoder = model.encoder, model.decoder
    for side, stack in (("encoder", encoder), ("decoder", decoder)):
        if not isinstance(stack, TransformerEncoderConfig | TransformerDecoderConfig):
            raise ModelError(f"T5 cannot express this model: model.{side}.kind is {stack.kind}, not transformer")
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    attention, positions = encoder.attention, model.positions
    if not (isinstance(attention, SoftAttentionConfig) and isinstance(positions, BucketedConfig)):
        raise ModelError(
            "T5 cannot express this model: it needs attention of the kind soft and positions of the kind bucketed"
        )
    names = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    content = {
        "architectures": [ARCHITECTURES[0]],
        "model_type": "t5",
        "is_encoder_decoder": True,
        "vocab_size": size,
        "d_model": model.width,
        "d_kv": attention.key_width or model.width // encoder.heads,
        "d_ff": encoder.feedforward,
        "num_layers": encoder.layers,
        "num_decoder_layers": decoder.layers,
        "num_heads": encoder.heads,
        "relative_attention_num_buckets": positions.buckets,
        "relative_attention_max_distance": positions.max_distance,
        "dropout_rate": model.dropout.residual,
        "layer_norm_epsilon": getattr(encoder.normalisation, "epsilon", 1e-6),
        "feed_forward_proj": names.get(encoder.activation, "relu"),
        "tie_word_embeddings": decoder.scale_output,
    }
    read = model_section(T5Settings.model_validate(content), model.tie_projection, Path(CONFIG))
    check_same_settings(model, read, "T5", _NOT_COMPARED)
    if len({*model.dropout.model_dump().values()}) > 1:
        warn(f"T5 has a single dropout rate: writing the rate of residuals, {model.dropout.residual}")
    return content
