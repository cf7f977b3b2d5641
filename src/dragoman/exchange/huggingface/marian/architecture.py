"""Converts the architecture of Marian models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.base.log import info
from dragoman.exchange.huggingface.bart_family import BartFamilySettings, shared_json, warn_of_single_dropout
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import parse_json_settings, parse_section
from dragoman.models.kinds.encoder_decoder import ModelConfig

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Dragoman's activation names, by Hugging Face's names."""

DEFAULT_POSITIONS = 512
"""The length limit that is written for a model without a limit, as in OPUS-MT."""

_NOT_COMPARED = ("preset", "embeddings.", "dropout.embedding", "positions.limit")
"""Prefixes of settings that affect training only or are written separately."""


class MarianSettings(BartFamilySettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    The last four keys must have their default values. Other values describe Marian models that Hugging Face's class
    cannot compute, although it has the keys.
    """

    vocab_size: int = Field(ge=1)
    decoder_vocab_size: int | None = None
    decoder_start_token_id: int = Field(ge=0)
    pad_token_id: int = Field(ge=0)
    eos_token_id: int = Field(ge=0)
    share_encoder_decoder_embeddings: bool = True
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
    section = {
        **settings.section(),
        "positions": {"kind": "sinusoidal", "layout": "halves", "limit": settings.max_position_embeddings},
        "tie_embeddings": tie_embeddings,
        "projection_bias": projection_bias,
    }
    return parse_section(section, ModelConfig, path)


def config_json(model: ModelConfig, sizes: tuple[int, int]) -> dict[str, Any]:
    """Return the content of `config.json` without the ids of special symbols.

    sizes: the sizes of the source and target vocabularies. Raises ModelError with the name and value of every setting
    that Marian does not support.
    """
    content = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        **shared_json(model, "Marian", ACTIVATIONS),
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1],
        "max_position_embeddings": getattr(model.positions, "limit", None) or DEFAULT_POSITIONS,
        "share_encoder_decoder_embeddings": model.tie_embeddings,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
    }
    _check_round_trip(model, content)
    warn_of_single_dropout(model, "Marian")
    return content


def _check_round_trip(model: ModelConfig, content: Mapping[str, Any]) -> None:
    """Raise ModelError unless `content` is converted back to the same model, so that no setting is overlooked."""
    ids = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 0}
    read = model_section(
        MarianSettings.model_validate({**content, **ids}), model.tie_embeddings, model.projection_bias, Path(CONFIG)
    )
    if model.target_positions == model.positions:
        model = model.model_copy(update={"target_positions": None})
    check_same_settings(model, read, "Marian", _NOT_COMPARED)
