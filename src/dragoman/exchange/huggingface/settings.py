"""Reads the settings in `config.json`, and builds dragoman's settings from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}
"""Dragoman's activation names, by Hugging Face's names."""

ACTIVATION_NAMES = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
"""Hugging Face's usual name of each of dragoman's activations."""


class FolderSettings(BaseModel):
    """The base class of the keys of `config.json` that determine the computation. Other keys are ignored.

    A field of a `Literal` type has a single supported value.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    architectures: list[str] | None = None

    @property
    def architecture(self) -> str | None:
        """The name of Hugging Face's class; None if the file does not name it."""
        return self.architectures[0] if self.architectures else None


S = TypeVar("S", bound=BaseModel)
C = TypeVar("C", bound=Config)


def parse_json_settings(content: Mapping[str, Any], settings: type[S], path: Path) -> S:
    """Return the settings in the content of a `config.json`. Raises ModelError for invalid or unsupported values."""
    if content.get("quantization_config") is not None:
        raise ModelError(f"{path}: quantised parameters are not supported: import the original model instead")
    try:
        return settings.model_validate(dict(content))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, each['loc']))} is {each['input']!r}: {each['msg']}" for each in error.errors()]
        raise ModelError(f"{path} is damaged or not supported:\n  " + "\n  ".join(problems)) from None


def check_activation(name: str, key: str, path: Path) -> None:
    """Raise ModelError unless dragoman has an activation function. key: its key in the file."""
    if name not in ACTIVATIONS:
        raise ModelError(f"{path}: unknown {key} {name!r} (supported: {', '.join(ACTIVATIONS)})")


def check_architecture(settings: FolderSettings, supported: tuple[str, ...], path: Path) -> None:
    """Raise ModelError if the file names a class of Hugging Face that is not supported."""
    if settings.architecture is not None and settings.architecture not in supported:
        raise ModelError(
            f"{path}: models of the class {settings.architecture} are not supported (supported: {', '.join(supported)})"
        )


def parse_section(section: Mapping[str, Any], config: type[C], path: Path) -> C:
    """Return dragoman's settings of a model that a file describes. Raises ModelError if it cannot be built."""
    try:
        return parse_settings(section, config, f"as {path} describes it")
    except ConfigError as error:
        raise ModelError(f"{path} describes a model that cannot be built: {error}") from None
