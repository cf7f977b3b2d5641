"""`open_engine`: opens the engine of a translation model from its folder, or of an ensemble from several folders."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import warn
from dragoman.base.machine.device import choose_device
from dragoman.checkpoint.folder import LoadedModel, check_serves, load_model_folder
from dragoman.engines.choice import (
    AUTOMATIC,
    EngineChoice,
    EngineTask,
    choose_engine,
    find_engine,
    one_line,
    supporting,
)
from dragoman.engines.engine import Engine
from dragoman.engines.registry import ENGINES, reference
from dragoman.engines.router import Router
from dragoman.exchange.ctranslate2.folder import ExportedModel
from dragoman.models.kinds.ensemble import Ensemble
from dragoman.models.kinds.registry import kind_of
from dragoman.text.tokenizer import Tokenizer


def open_engine(
    folders: Sequence[Path], device: str | None, choice: EngineChoice
) -> tuple[Engine, LoadedModel | ExportedModel]:
    """Return the engine for a model folder, a folder that only one engine reads, or an ensemble of several folders.

    device: as in `Translator.load`. Raises ConfigError if there is no folder, ModelError for a folder that cannot be
    part of an ensemble, and the same errors as `load_model_folder`, `choose_engine` and `FolderFormat.open`.
    """
    if not folders:
        raise ConfigError("no model to load: name at least one folder")
    formats = [each for each in ENGINES if each.format is not None]
    for folder in folders:
        for engine in formats:
            assert engine.format is not None
            if not engine.format.matches(folder):
                continue
            if len(folders) > 1:
                raise ModelError(
                    f"{folder} was exported for {engine.format.name}, which does not support ensembles: use the model "
                    "folder from which it was exported"
                )
            if choice.name not in (AUTOMATIC, engine.name):
                find_engine(choice.name, EngineTask("translate"))
                raise ConfigError(
                    f"{folder} was exported for {engine.format.name}: --engine {choice.name} needs the model folder "
                    "from which it was exported"
                )
            chosen = choose_device(device or "cpu")
            if not engine.computes_on(chosen):
                raise ConfigError(f"the {engine.name} engine does not run on {chosen}: leave out --device {device}")
            opened, described = engine.format.open(folder, choice.requested_precision, choice.thread_count)
            return opened, described
    kind = check_serves(folders[0], "translate")
    task = EngineTask("translate", kind.name, len(folders) > 1)
    if choice.name != AUTOMATIC:
        find_engine(choice.name, task)
    loaded, torch_device = _load(folders, device, choice, task)
    single = replace(choice, folder=folders[0]) if len(folders) == 1 else choice
    return translation_engine(loaded, torch_device, single), loaded


def translation_engine(loaded: LoadedModel, device: torch.device, choice: EngineChoice) -> Engine:
    """Return the engine for a loaded translation model, as `choose_engine` does.

    Requests that it does not support are passed to PyTorch's engine if the engine was chosen by `auto` or has a
    `fallback`.
    """
    kind = kind_of(loaded.config.get("model") or {})
    task = EngineTask("translate", kind.name, isinstance(loaded.model, Ensemble))
    chosen = choose_engine(task, loaded, device, choice)
    engine: Engine = chosen.built
    is_requested = choice.name != AUTOMATIC
    if chosen.kind.name == supporting(task)[-1].name or (is_requested and not chosen.service.fallback):
        return engine
    return Router(engine, reference(loaded, device), is_requested)


def _load(
    folders: Sequence[Path], name: str | None, choice: EngineChoice, task: EngineTask
) -> tuple[LoadedModel, torch.device]:
    """Return a model, or several as an ensemble, on a device on which an engine computes it. name: of the device."""
    has_gpu_engine = any(engine.computes_on(torch.device("cuda")) for engine in supporting(task))
    device = choose_device(name or ("auto" if has_gpu_engine else "cpu"))
    try:
        return _load_all(folders, device), device
    except RuntimeError as error:  # raised by CUDA, for example if the GPU has no free memory
        if device.type == "cpu" or (name or "auto") != "auto" or choice.name == "cuda":
            raise
        warn(f"translating on the CPU, because the GPU cannot be used ({one_line(error)}). To select it: --device cpu")
        device = choose_device("cpu")
        return _load_all(folders, device), device


def _load_all(folders: Sequence[Path], device: torch.device) -> LoadedModel:
    """Return the models of the folders as one, with the tokenizers, metadata and search settings of the first.

    Raises the same errors as `load_model_folder`, and ModelError for models with different languages or vocabularies.
    """
    loaded = [load_model_folder(folder, device, "translate") for folder in folders]
    first = loaded[0]
    for folder, other in zip(folders[1:], loaded[1:], strict=True):
        for side in ("source", "target"):
            languages = tuple(getattr(each.meta, f"{side}_language") for each in (first, other))
            if None not in languages and languages[0] != languages[1]:
                raise ModelError(
                    f"the {side} language of {folders[0]} is {languages[0]}, but that of {folder} is {languages[1]}: "
                    "the models of an ensemble need the same languages"
                )
        for side in ("source", "target"):
            pair: tuple[Tokenizer, Tokenizer] = getattr(first.tokenizers, side), getattr(other.tokenizers, side)
            if pair[0].fingerprint != pair[1].fingerprint:
                sizes = " and ".join(f"{each.size:,}" for each in pair)
                raise ModelError(
                    f"{folders[0]} and {folder} have different {side} vocabularies ({sizes} entries): the models of an "
                    "ensemble need the same vocabularies. Train the second model from the same text and settings, or "
                    "with train.teacher or train.start naming the first. A model with another vocabulary can rerank "
                    "the translations of the first (dragoman tune)"
                )
    return first if len(loaded) == 1 else replace(first, model=Ensemble([each.model for each in loaded]))
