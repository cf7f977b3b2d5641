"""Starting a run from a trained model: its parameters and vocabularies, and the settings that they belong to."""

from typing import Any, TypeVar

import torch

from dragoman.base.config import Config
from dragoman.base.errors import ConfigError
from dragoman.base.settings import parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder, model_parameters
from dragoman.models.build import ModelConfig, Seq2Seq
from dragoman.text.tokenizers import TextConfig
from dragoman.train.config import RunConfig

C = TypeVar("C", bound=Config)

# What may differ from the run that the model comes from: how it is trained further, not what it is.
_FREE = {"model": ("dropout", "preset", "embeddings.frozen"), "text": ("subword.dropout",)}
_MOST_LISTED = 5


def load_start(config: RunConfig) -> tuple[RunConfig, LoadedModel | None]:
    """The model of `train.start`, if one is set, and the settings with what they leave out taken from its folder.

    Raises ConfigError where the sections model or text say something else than the folder, ModelError for a folder that
    is none.
    """
    folder = config.train.start
    if folder is None:
        return config, None
    start = load_model_folder(folder, torch.device("cpu"))
    model = _agreed(config, "model", config.model, ModelConfig, start)
    text = _agreed(config, "text", config.text, TextConfig, start)
    return config.model_copy(update={"model": model, "text": text}), start


def copy_parameters(start: LoadedModel, model: Seq2Seq) -> None:
    """Give `model` the values of the start's parameters and buffers."""
    values = model_parameters(start.model)
    with torch.no_grad():
        for name, tensor in model_parameters(model).items():
            tensor.copy_(values[name])


def _agreed(config: RunConfig, name: str, given: C, kind: type[C], start: LoadedModel) -> C:
    """The section that the run will have."""
    if name not in start.config:
        return given
    folder = config.train.start
    stored = parse_settings(start.config[name], kind, f"in section {name} of {folder / 'config.yaml'}")  # type: ignore[operator]
    if name not in config.model_fields_set:
        return stored
    if isinstance(given, ModelConfig) and given.preset == "auto":
        given = type(given).model_validate({**given.model_dump(exclude_unset=True), "preset": stored.preset})  # type: ignore[attr-defined]
    before, now = _flat(stored.model_dump(mode="json")), _flat(given.model_dump(mode="json"))
    different = [
        key
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and not any(f"{key}.".startswith(f"{free}.") for free in _FREE[name])
    ]
    if different:
        shown = ", ".join(
            f"{name}.{key} ({now.get(key)!r} here, {before.get(key)!r} there)" for key in different[:_MOST_LISTED]
        )
        raise ConfigError(
            f"train.start={folder} is another model than this run asks for: {shown}. Leave these settings out, and "
            "they are taken from the folder"
        )
    return given


def _flat(tree: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        key: value for name, inner in tree.items() for key, value in _flat(inner, f"{path}.{name}".strip(".")).items()
    }
