"""Starting a run from a trained model: its parameters and vocabularies, and the settings that they belong to.

Its vocabulary is kept. Only tags can be new: each takes an id after all others, and begins as the mean of all entries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import flat, parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.checkpoint.tensors import model_parameters
from dragoman.models.seq2seq import ModelConfig, Seq2Seq
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig, Tokenizers

C = TypeVar("C", bound=Config)

# What may differ from the run that the model comes from: how it is trained further, not what it is.
_FREE = {"model": ("dropout", "preset", "embeddings.frozen"), "text": ("subword.dropout", "tags")}
_MOST_LISTED = 5


def load_start(config: TranslationRun) -> tuple[TranslationRun, LoadedModel | None]:
    """The model of `train.start`, if one is set, and the settings with what they leave out taken from its folder.

    Its tokenizers have the tags of this run besides their own, its parameters not yet: `copy_parameters` adds them.
    Raises ConfigError where the sections model or text say something else than the folder, ModelError for a folder that
    is none.
    """
    folder = config.train.start
    if folder is None:
        return config, None
    start = load_model_folder(folder, torch.device("cpu"))
    origin = Origin("train.start", folder, start.config)
    model = agreed(config, "model", ModelConfig, origin)
    text = agreed(config, "text", TextConfig, origin)
    languages = start.meta.target_languages
    for corpus in config.data.corpora:
        if languages and corpus.target_language is None:
            raise ConfigError(
                f"the model of train.start={folder} writes several languages ({', '.join(languages)}), so each corpus "
                f"needs its own: set target_language of {corpus}"
            )
    tokenizers = with_all_tags(start.tokenizers, config, text)
    if new := tokenizers.tags[len(start.tokenizers.tags) :]:
        info(f"Tags that the start does not have yet: {', '.join(new)}. They begin as the mean of all entries.")
        start = replace(start, text=tokenizers)
    return config.model_copy(update={"model": model, "text": text}), start


def copy_parameters(start: LoadedModel, model: Seq2Seq) -> None:
    """Give `model` the values of the start's parameters and buffers; rows of new tags get the mean of the others.

    Raises ConfigError where such a row could never learn anything.
    """
    values = model_parameters(start.model)
    with torch.no_grad():
        for name, tensor in model_parameters(model).items():
            old = values[name]
            tensor[: len(old)].copy_(old) if tensor.dim() else tensor.copy_(old)
            if tensor.dim() and len(tensor) > len(old):
                if not tensor.requires_grad:
                    raise ConfigError(
                        f"new tags need an embedding that learns, but {name} is frozen: set "
                        "model.embeddings.frozen=false, or leave out tags that the start does not have"
                    )
                tensor[len(old) :] = old.mean(0)


def with_all_tags(tokenizers: Tokenizers, run: TranslationRun, text: TextConfig) -> Tokenizers:
    """The same with those tags of the run's behind their own that they lack. text: the run's section."""
    corpora = (tag for corpus in run.data.corpora for tag in corpus.all_tags)
    wanted = [*text.tags, *corpora, *run.data.inline_symbols]
    new = [tag for tag in dict.fromkeys(wanted) if tag not in tokenizers.tags]
    return tokenizers.with_tags([*tokenizers.tags, *new]) if new else tokenizers


@dataclass(frozen=True)
class Origin:
    """A model that a run takes settings from. setting: the key that names its folder; config: its own settings."""

    setting: str
    folder: Path
    config: Mapping[str, Any]


def agreed(run: TranslationRun, name: str, kind: type[C], origin: Origin) -> C:
    """The section that the run will have. Raises ConfigError where it says something else than the origin's."""
    section, different = compared(run, name, kind, origin)
    if different:
        raise ConfigError(
            f"{origin.setting}={origin.folder} is another model than this run asks for: "
            f"{', '.join(different[:_MOST_LISTED])}. Leave these settings out, and they are taken from the folder"
        )
    return section


def compared(run: TranslationRun, name: str, kind: type[C], origin: Origin) -> tuple[C, list[str]]:
    """A section with what it leaves open as in the origin's, and in what the two differ that are to be alike."""
    given: C = getattr(run, name)
    if name not in origin.config:
        return given, []
    stored = parse_settings(origin.config[name], kind, f"in section {name} of {origin.folder / 'config.yaml'}")
    if name not in run.model_fields_set:
        return stored, []
    if isinstance(given, ModelConfig) and given.preset == "auto":
        given = type(given).model_validate({**given.model_dump(exclude_unset=True), "preset": stored.preset})  # type: ignore[attr-defined]
    before, now = flat(stored.model_dump(mode="json")), flat(given.model_dump(mode="json"))
    return given, [
        f"{name}.{key} ({now.get(key)!r} here, {before.get(key)!r} there)"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and not any(f"{key}.".startswith(f"{free}.") for free in _FREE[name])
    ]
