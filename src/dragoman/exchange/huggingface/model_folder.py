"""What the families have in common: the end of an import, and dragoman's model folders as the source of an export."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import atomic_folder
from dragoman.base.log import warn
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import CONFIG, PARAMETERS, read_config, validate
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import load_tensors, model_parameters, read_shapes, save_tensors
from dragoman.exchange.huggingface.files import CONFIG as THEIR_CONFIG
from dragoman.exchange.huggingface.files import GENERATION, ImportedModel, read_json, write_json
from dragoman.exchange.huggingface.files import PARAMETERS as THEIR_PARAMETERS
from dragoman.exchange.huggingface.settings import C
from dragoman.exchange.huggingface.weights import WeightTable
from dragoman.models.assembly import without_storage
from dragoman.models.kinds import parse_model
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

_MAX_LISTED = 4


def import_model(
    architecture: str,
    sections: Mapping[str, Config],
    tokenizer: Tokenizer,
    table: WeightTable,
    tensors: Mapping[str, Tensor],
    path: Path,
) -> ImportedModel:
    """Return an imported model with one vocabulary, and warn of tensors that it does not use.

    architecture: name of Hugging Face's class. sections: the sections of `config.yaml` by name, among them `model`.
    path: the file of the tensors. Raises ModelError if the tensors do not fit the model.
    """
    model: Any = sections["model"]
    tokenizers = Tokenizers(tokenizer, tokenizer)
    parameters = table.to_ours(tensors, expected_parameters(model, tokenizers), path)
    if unused := table.unused_names(tensors):
        more = f" and {len(unused) - _MAX_LISTED} more" if len(unused) > _MAX_LISTED else ""
        warn(
            f"{path}: a {architecture} does not use the tensors {', '.join(unused[:_MAX_LISTED])}{more}, so they are "
            "not imported"
        )
    return ImportedModel(sections, tokenizers, parameters, origin_meta(architecture, path))


def read_generation(folder: Path, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path]:
    """Return the generation settings of a Hugging Face folder and the file that contains them.

    Older folders have them in `config.json`, whose content is `config`. Raises ModelError for a damaged file.
    """
    path = folder / GENERATION
    return (content, path) if (content := read_json(path, optional=True)) else (config, folder / THEIR_CONFIG)


def write_folder(
    out: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    write_vocabulary: Callable[[Path], None],
    generation: Mapping[str, Any] | None = None,
) -> None:
    """Write a Hugging Face folder, completely or not at all.

    config: the content of `config.json` without the dtype of the tensors. write_vocabulary: writes the files of the
    vocabulary into a folder. generation: the content of `generation_config.json`; None: the model has none.
    """
    with atomic_folder(out) as staged:
        write_json(staged / THEIR_CONFIG, {**config, "dtype": dtype_name(tensors)})
        if generation is not None:
            write_json(staged / GENERATION, generation)
        write_vocabulary(staged)
        save_tensors(staged / THEIR_PARAMETERS, tensors, {"format": "pt"})


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


def origin_meta(architecture: str, parameters: Path) -> Meta:
    """Return the metadata of an imported model, which name its class, folder and the digest of its parameters."""
    with parameters.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Meta(
        step=0, origin=f"{architecture} from {parameters.parent.resolve().name}, {parameters.name} SHA-256 {digest}"
    )
