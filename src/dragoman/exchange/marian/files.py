"""The files of a Hugging Face folder: JSON and named tensors."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.exchange.marian.pickle import load_pickle

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
ADDED, SPECIAL = "added_tokens.json", "special_tokens_map.json"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
PARAMETERS, PICKLE = "model.safetensors", "pytorch_model.bin"
NEEDED = (CONFIG, VOCABULARY, SOURCE_MODEL, TARGET_MODEL)


def check_folder(folder: Path) -> None:
    """Raises ModelError for a folder that is none, or holds no Hugging Face model."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"{folder} {what}; give the folder of a Hugging Face model, which holds {', '.join(NEEDED)}")
    if (folder / "meta.json").is_file() and (folder / "config.yaml").is_file():
        raise ModelError(f"{folder} is a model folder of dragoman already: use it as it is")
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{folder} is no folder of a Hugging Face model: {CONFIG} is missing")


def check_whole(folder: Path) -> None:
    """Raises ModelError where a file is missing that every Marian model has."""
    if missing := [name for name in NEEDED if not (folder / name).is_file()]:
        raise ModelError(f"{folder} is not the whole folder of a Marian model: {', '.join(missing)} missing")


def read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    """An object; an empty one where there is no file and it is optional. Raises ModelError for anything else."""
    if optional and not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} must hold an object, not {type(content).__name__}")
    return content


def read_bytes(path: Path) -> bytes:
    """A file. Raises ModelError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error}") from None


def read_tensors(folder: Path, allow_pickle: bool) -> tuple[Path, dict[str, Tensor]]:
    """The folder's parameters, on the CPU, and the file that they come from.

    Raises ModelError where there are none, and for a pickle that is not allowed.
    """
    path, pickled = folder / PARAMETERS, folder / PICKLE
    if path.is_file():
        return path, load_tensors(path)[0]
    if not pickled.is_file():
        raise ModelError(f"{folder} holds no parameters: {PARAMETERS} is missing")
    if not allow_pickle:
        raise ModelError(
            f"{folder} holds its parameters as a pickle only ({PICKLE}). Save it as safetensors with Hugging Face's "
            "`save_pretrained`; or, if you trust its origin, give --allow-pickle, by which torch reads tensors from it "
            "and nothing else"
        )
    return pickled, load_pickle(pickled)
