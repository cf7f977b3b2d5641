"""Reads dragoman's model folders for an export, and describes the origin of an import."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import CONFIG, PARAMETERS, read_config, validate
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import load_tensors, model_parameters, read_shapes
from dragoman.exchange.huggingface.settings import C
from dragoman.models.assembly import without_storage
from dragoman.models.kinds import parse_model
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import Tokenizers


def read_model(folder: Path) -> ModelSettings:
    """Return the settings of the model of a folder. Raises ModelError for damaged settings."""
    try:
        return parse_model(read_config(folder)["model"], f"in the `model` section of {folder / CONFIG}")
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None


def read_search(folder: Path, config: type[C]) -> C:
    """Return the search settings of a folder. Raises ModelError for damaged settings."""
    try:
        section = read_config(folder).get("search") or {}
        return parse_settings(section, config, f"in the `search` section of {folder / CONFIG}")
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None


def expected_parameters(model: ModelSettings, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """Return the parameters of a model without storage."""
    with without_storage():
        return model_parameters(model.build_for(tokenizers.sizes))


def load_parameters(folder: Path, model: ModelSettings, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """Return the parameters in a folder. Raises ModelError with a list of all differences from the settings."""
    path = folder / PARAMETERS
    validate(expected_parameters(model, tokenizers), read_shapes(path)[0], path, tokenizers.sizes)
    return load_tensors(path)[0]


def dtype_name(tensors: Mapping[str, Tensor]) -> str:
    """Return the common dtype of tensors, as Hugging Face writes it; float32 if there are several."""
    types = {tensor.dtype for tensor in tensors.values()}
    return str(next(iter(types)) if len(types) == 1 else torch.float32).removeprefix("torch.")


def origin_meta(architecture: str, folder: Path, parameters: Path) -> Meta:
    """Return the metadata of an imported model, which name its class, folder and the digest of its parameters."""
    with parameters.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Meta(step=0, origin=f"{architecture} from {folder.resolve().name}, {parameters.name} SHA-256 {digest}")
