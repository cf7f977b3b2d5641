"""Ensembles: several model folders that translate together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.machine.device import choose_device
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.models.ensemble import Ensemble
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.engines.torch import TorchEngine


def open_ensemble(
    folders: Sequence[Path], device: str | None = None, engine: str = "auto", precision: str | None = None
) -> tuple[TorchEngine, LoadedModel]:
    """Return PyTorch's engine for several models, and the models as one. Arguments are as in `Translator.load`.

    Raises ConfigError if there is no folder, or for another engine, and what `load_ensemble` raises.
    """
    if not folders:
        raise ConfigError("no model to load: name at least one folder")
    if engine not in ("auto", "torch"):
        raise ConfigError(f"the engine {engine} computes one model, not several: leave out --engine, or use torch")
    chosen = choose_device(device or "auto")
    loaded = load_ensemble(folders, chosen)
    if precision not in (None, "float32"):
        warn(f"computing in float32: several models are computed by PyTorch, which has no {precision}")
    elif engine == "auto" and chosen.type == "cpu":
        info("several models are computed by PyTorch; the native engine, which is faster, computes one")
    return TorchEngine(loaded.model, loaded.tokenizers, chosen), loaded


def load_ensemble(folders: Sequence[Path], device: torch.device) -> LoadedModel:
    """Return the models of the folders as one, with the tokenizers, metadata and search settings of the first.

    Raises what `load_model_folder` raises, and ModelError for models with different languages or vocabularies, whose
    ids mean different text.
    """
    for folder in folders:
        if is_exported(folder):
            raise ModelError(
                f"{folder} was exported for CTranslate2, which computes one model: for an ensemble give the model "
                "folder that it was exported from"
            )
    loaded = [load_model_folder(folder, device, "translate") for folder in folders]
    first = loaded[0]
    for folder, other in zip(folders[1:], loaded[1:], strict=True):
        for side, language in (("source", "reads"), ("target", "writes")):
            ours, others = (getattr(each.meta, f"{side}_language") for each in (first, other))
            if None not in (ours, others) and ours != others:
                raise ModelError(
                    f"{folders[0]} {language} {ours} and {folder} {others}: they cannot translate together"
                )
        for side in ("source", "target"):
            theirs: tuple[Tokenizer, Tokenizer] = getattr(first.tokenizers, side), getattr(other.tokenizers, side)
            if theirs[0].fingerprint != theirs[1].fingerprint:
                sizes = " and ".join(f"{each.size:,}" for each in theirs)
                raise ModelError(
                    f"{folders[0]} and {folder} have different {side} vocabularies ({sizes} entries): models translate "
                    "together only with the same ones. Train the second from the same text and settings, or with "
                    "train.teacher or train.start naming the first; models of different vocabularies can rerank one "
                    "another's translations (dragoman tune)"
                )
    return replace(first, model=Ensemble([each.model for each in loaded]))
