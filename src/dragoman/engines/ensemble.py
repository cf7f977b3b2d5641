"""Functions that open several model folders as an ensemble."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.machine.device import choose_device
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.engines.torch.engine import TorchEngine
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.models.architectures.ensemble import Ensemble
from dragoman.text.tokenizer import Tokenizer


def open_ensemble(
    folders: Sequence[Path], device: str | None = None, engine: str = "auto", precision: str | None = None
) -> tuple[TorchEngine, LoadedModel]:
    """Return PyTorch's engine for an ensemble, and the ensemble itself. Arguments are as in `Translator.load`.

    Raises ConfigError if there is no folder or if another engine is requested, and the same errors as `load_ensemble`.
    """
    if not folders:
        raise ConfigError("no model to load: name at least one folder")
    if engine not in ("auto", "torch"):
        raise ConfigError(f"the {engine} engine does not support ensembles: leave out --engine, or use torch")
    torch_device = choose_device(device or "auto")
    loaded = load_ensemble(folders, torch_device)
    if precision not in (None, "auto", "float32"):
        warn(f"computing in float32: the torch engine computes ensembles and does not support {precision}")
    elif engine == "auto" and torch_device.type == "cpu":
        info("the torch engine computes ensembles; the native engine is faster, but computes single models only")
    return TorchEngine(loaded.model, loaded.tokenizers, torch_device), loaded


def load_ensemble(folders: Sequence[Path], device: torch.device) -> LoadedModel:
    """Return the models of the folders as one, with the tokenizers, metadata and search settings of the first.

    Raises the same errors as `load_model_folder`, and ModelError for models with different languages or vocabularies.
    """
    for folder in folders:
        if is_exported(folder):
            raise ModelError(
                f"{folder} was exported for CTranslate2, which does not support ensembles: use the model folder from "
                "which it was exported"
            )
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
    return replace(first, model=Ensemble([each.model for each in loaded]))
