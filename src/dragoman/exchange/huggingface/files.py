"""Reads and writes files of Hugging Face model folders; `ImportedModel` is the result of converting such a folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.base.settings.config import Config
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import load_tensors
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.foreign import recognise_vocabulary

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
ADDED, SPECIAL = "added_tokens.json", "special_tokens_map.json"
PARAMETERS, PICKLE = "model.safetensors", "pytorch_model.bin"


@dataclass(frozen=True)
class ImportedModel:
    """A converted model.

    sections: the sections of `config.yaml`, by name. parameters: tensors by dragoman's parameter names.
    """

    sections: Mapping[str, Config]
    tokenizers: Tokenizers
    parameters: Mapping[str, Tensor]
    meta: Meta


def check_folder(folder: Path) -> None:
    """Raise ModelError unless `folder` contains a Hugging Face model."""
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"{folder} {problem}: use the folder of a Hugging Face model, which contains {CONFIG}")
    if (folder / "meta.json").is_file() and (folder / "config.yaml").is_file():
        raise ModelError(f"{folder} is already a dragoman model folder: use it directly")
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{folder} is not a Hugging Face model folder: {CONFIG} is missing")


def read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    """Read a JSON object from a file. Returns an empty object if the file is optional and missing.

    Raises ModelError if the file cannot be read or contains no JSON object.
    """
    if optional and not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        recognised = None if isinstance(error, OSError) else recognise_vocabulary(path)
        if recognised is not None:
            raise ModelError(f"{path} must be a JSON file, but is {recognised}") from None
        raise ModelError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} must contain an object, not {type(content).__name__}")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object as Hugging Face does: indented, with a newline at the end."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def read_bytes(path: Path) -> bytes:
    """Read a file. Raises ModelError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error}") from None


def read_tensors(folder: Path, allow_pickle: bool) -> tuple[Path, dict[str, Tensor]]:
    """Return the path of the parameter file in a folder, and its parameters on the CPU.

    Raises ModelError if there is no such file, or only a pickle and `allow_pickle` is false.
    """
    path, pickled = folder / PARAMETERS, folder / PICKLE
    if path.is_file():
        return path, load_tensors(path)[0]
    if not pickled.is_file():
        raise ModelError(f"{folder} has no parameters: {PARAMETERS} is missing")
    if not allow_pickle:
        raise ModelError(
            f"{folder} contains its parameters only as a pickle ({PICKLE}). Save the model as safetensors with Hugging "
            "Face's `save_pretrained`. If you trust the origin of the file, you can use --allow-pickle instead, which "
            "loads nothing but tensors"
        )
    return pickled, _load_pickle(pickled)


def _load_pickle(path: Path) -> dict[str, Tensor]:
    """Load named tensors from a pickle to the CPU, with `weights_only`, which runs no code from the file."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load can raise exceptions of many types for untrusted files
        reason = str(error).split("\n", 1)[0]
        raise ModelError(f"{path} is damaged or contains objects other than tensors: {reason}") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} must contain tensors by name, not {type(content).__name__}")
    for name, tensor in content.items():
        if not (isinstance(name, str) and isinstance(tensor, Tensor)):
            raise ModelError(f"{path} must contain tensors by name, but {name!r} is of type {type(tensor).__name__}")
    return {name: tensor.detach() for name, tensor in content.items()}
