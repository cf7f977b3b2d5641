"""Converts the architecture of BART models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.exchange.huggingface.bart_family import (
    EndStartSettings,
    read_end_start_settings,
    shared_json,
    warn_of_single_dropout,
)
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import ACTIVATION_NAMES, parse_section
from dragoman.models.kinds.encoder_decoder import ModelConfig

ARCHITECTURES = ("BartForConditionalGeneration", "BartModel")
_NOT_COMPARED = ("preset", "embeddings.", "dropout.embedding")


class BartSettings(EndStartSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    The last keys must have their default values. Other values describe models that Hugging Face's class cannot compute,
    although older files have the keys.
    """

    vocab_size: int = Field(50265, ge=1)
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[True] = True
    add_final_layer_norm: Literal[False] = False
    static_position_embeddings: Literal[False] = False
    add_bias_logits: Literal[False] = False


def read_settings(content: Mapping[str, Any], path: Path) -> BartSettings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    return read_end_start_settings(content, BartSettings, ARCHITECTURES, path)


def model_section(settings: BartSettings, projection_bias: bool, excluded: Sequence[int], path: Path) -> ModelConfig:
    """Return the `model` section for a BART model.

    projection_bias: whether the bias of the logits is not zero. excluded: ids of the special symbols that BART's
    vocabulary does not have. Raises ModelError if the settings are inconsistent.
    """
    section = {
        **settings.section(),
        "positions": {"kind": "learned", "limit": settings.max_position_embeddings},
        "tie_embeddings": settings.tie_word_embeddings,
        "projection_bias": projection_bias,
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
    content = {
        "architectures": [ARCHITECTURES[0]],
        "model_type": "bart",
        **shared_json(model, "BART", ACTIVATION_NAMES),
        "vocab_size": size,
        "max_position_embeddings": getattr(model.positions, "limit", None) or 1024,
    }
    read = model_section(BartSettings.model_validate(content), model.projection_bias, excluded, Path(CONFIG))
    if model.target_positions == model.positions:
        model = model.model_copy(update={"target_positions": None})
    check_same_settings(model, read, "BART", _NOT_COMPARED)
    warn_of_single_dropout(model, "BART")
    return content
