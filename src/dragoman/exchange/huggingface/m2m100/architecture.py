"""Converts the architecture of M2M-100 and NLLB models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from torch import Tensor

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
from dragoman.nn.positions.sinusoidal import sinusoids

ARCHITECTURES = ("M2M100ForConditionalGeneration", "M2M100Model")
_WAVELENGTH = 10000.0
_ROUNDING = 4e-6
"""Largest difference of angles per position: files contain sines that were computed in float32."""

_NOT_COMPARED = ("preset", "embeddings.", "dropout.embedding")


class M2M100Settings(EndStartSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    Tables that are not tied, and a mixture of experts (NLLB-MoE has its own `model_type`), are not supported.
    """

    vocab_size: int = Field(128112, ge=1)
    d_model: int = Field(1024, ge=4, multiple_of=2)
    activation_function: str = "relu"
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    scale_embedding: bool = True
    tie_word_embeddings: Literal[True] = True

    @property
    def positions(self) -> dict[str, Any]:
        """The position scheme, for the `model` section.

        The exponents of the wavelengths are i / (d/2 − 1) instead of i / (d/2), as in tensor2tensor; another base
        expresses the same.
        """
        half = self.d_model // 2
        return {
            "kind": "sinusoidal",
            "layout": "halves",
            "base": _WAVELENGTH ** (half / (half - 1)),
            "first": self.pad_token_id + 1,
            "limit": self.max_position_embeddings,
        }


def read_settings(content: Mapping[str, Any], path: Path) -> M2M100Settings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    return read_end_start_settings(content, M2M100Settings, ARCHITECTURES, path)


def model_section(settings: M2M100Settings, path: Path) -> ModelConfig:
    """Return the `model` section of a model. Raises ModelError if the settings are inconsistent."""
    section = settings.section()
    section |= {side: {**section[side], "norm": "pre"} for side in ("encoder", "decoder")}
    return parse_section(section | {"positions": settings.positions, "start_symbol": "eos"}, ModelConfig, path)


def config_json(model: ModelConfig, size: int) -> dict[str, Any]:
    """Return the content of `config.json` without the ids of special symbols. size: of M2M-100's vocabulary.

    Raises ModelError with the name and value of every setting that M2M-100 does not support.
    """
    content = {
        "architectures": [ARCHITECTURES[0]],
        "model_type": "m2m_100",
        **shared_json(model, "M2M-100", ACTIVATION_NAMES),
        "vocab_size": size,
        "max_position_embeddings": getattr(model.positions, "limit", None) or 1024,
    }
    first = getattr(model.positions, "first", 0)
    read = model_section(M2M100Settings.model_validate({**content, "pad_token_id": max(0, first - 1)}), Path(CONFIG))
    if model.target_positions == model.positions:
        model = model.model_copy(update={"target_positions": None})
    check_same_settings(model, read, "M2M-100", _NOT_COMPARED)
    warn_of_single_dropout(model, "M2M-100")
    return content


def has_positions(table: Tensor, settings: M2M100Settings) -> bool:
    """Return whether a table in a file (rows, width) contains the model's sinusoids, except for the row of padding."""
    wanted = sinusoids(len(table), settings.d_model, settings.positions["base"], "halves")
    wanted[settings.pad_token_id] = 0
    return table.shape == wanted.shape and bool(((table.float() - wanted).abs() < _ROUNDING * len(table)).all())
