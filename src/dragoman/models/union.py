"""Every kind of model by its `kind`; a new one is a file in this folder and a line here."""

from collections.abc import Mapping
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.models.language_model import LanguageModelConfig
from dragoman.models.seq2seq import ModelConfig

AnyModelConfig = ModelConfig | LanguageModelConfig
MODELS: Mapping[str, type[AnyModelConfig]] = {"encoder_decoder": ModelConfig, "decoder_only": LanguageModelConfig}
DEFAULT = "encoder_decoder"


def model_kind(section: Mapping[str, Any]) -> str:
    """The kind that the settings of a model name. The first kind's files name none.

    Raises ConfigError for one that there is not.
    """
    kind = section.get("kind", DEFAULT)
    if kind not in MODELS:
        raise ConfigError(f"model.kind: there is no '{kind}'; choose one of {', '.join(MODELS)}, or update dragoman")
    return str(kind)


def parse_model(section: Mapping[str, Any], origin: str) -> AnyModelConfig:
    """The config that the settings of a model describe. Raises ConfigError as `parse_settings` does."""
    return parse_settings(section, MODELS[model_kind(section)], origin)
