"""The encoder of a model with a head, taken from another model: its settings and its vocabulary.

`train.start` may be any model folder with an encoder or a decoder. The settings of the encoder and the vocabulary are
those of the folder, unless the recipe sets them.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import CONFIG
from dragoman.checkpoint.start import Start
from dragoman.models.heads.union import HeadConfig, SeveralHeadsConfig
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.models.kinds.registry import parse_model
from dragoman.models.settings import ModelSettings
from dragoman.tasks.head_run import HeadRun
from dragoman.tasks.start.settings import StartedRun, stored_text
from dragoman.text.tokenizers import Tokenizers


def load_encoder(run: HeadRun) -> StartedRun:
    """Read the model folder `train.start`, if it is set, and complete the `model` and `text` sections from it.

    Raises ConfigError if the folder's model has no part that a model with a head could use, ModelError if the folder
    is not a model folder.
    """
    folder = run.train.start
    if folder is None:
        return StartedRun(run)
    start = Start.load(folder, run.train.start_parts)
    stored = parse_model(start.loaded.config["model"], f"in the model section of {folder / CONFIG}")
    base = encoder_settings(stored)
    if run.model.generator is None:
        base.pop("generator", None)
    settings = _merge(base, run.model.model_dump(exclude_unset=True))
    run = run.model_copy(update={"model": parse_settings(settings, EncoderOnlyConfig, f"model, from {folder}")})
    if start.loaded.text is None:
        return StartedRun(run, start)
    text = stored_text(start.loaded.config, folder).one_sided()
    # The settings of a stored run contain the same section.
    if "text" in run.model_fields_set and run.text != text:
        return StartedRun(run, start)
    tokenizer = start.loaded.text.target if isinstance(stored, LanguageModelConfig) else start.loaded.text.source
    run = run.model_copy(update={"text": text})
    return StartedRun(run, start, Tokenizers.of_one(tokenizer.with_prefix("")))


def fill_encoder(start: Start, model: nn.Module, run: HeadRun, tokenizers: Tokenizers) -> None:
    """Copy the parts of `train.start` into a new model. A head with other labels, or for another task, stays new.

    The hidden layer of an encoder without a head, such as BERT's pooler, serves any task. If the model has several
    heads, each of them is compared with the head of the same name.
    """
    head = run.model.head
    heads: list[tuple[str | None, HeadConfig]] = [(None, head)]
    if isinstance(head, SeveralHeadsConfig):
        heads = [*(head.heads or {}).items()]
    excluded: dict[str, str] = {}
    for name, each in heads:
        if _stored_head(start).get("kind") != "none" and not has_same_head(start, each, name):
            part = "head" if name is None else f"head.{name}"
            excluded |= {part: _OTHER_HEAD, f"{part}.projection": _OTHER_HEAD}
    start.fill(model, tokenizers, run.model.model_dump(mode="json"), excluded)


_OTHER_HEAD = "for another task or other labels"


def head_rate(start: Start | None, set_rate: float | None, head: HeadConfig, new: float) -> float:
    """Return `train.head_rate`: `set_rate`, or by default `new` for a new head on a pre-trained encoder, else 1."""
    if set_rate is not None:
        return set_rate
    return 1.0 if start is None or has_same_head(start, head) else new


def has_same_head(start: Start, head: HeadConfig, name: str | None = None) -> bool:
    """Return whether the model in `train.start` has a head of the same kind, with the same labels and parts.

    name: the name of the head if the models have several; None: they have one.
    """
    stored = _stored_head(start)
    if name is not None:
        stored = (stored.get("heads") or {}).get(name) or {}
    own = head.model_dump(mode="json")
    compared = ("kind", "labels", "tags", "tagged", "pair", "transitions")
    return all(stored.get(key) == own.get(key) for key in compared)


def _stored_head(start: Start) -> Mapping[str, Any]:
    return dict(start.loaded.config["model"]).get("head") or {}


def encoder_settings(model: ModelSettings) -> dict[str, Any]:
    """Return the settings of a model with a head that has the same encoder as `model`.

    Raises ConfigError for a kind of model without an encoder or decoder.
    """
    if isinstance(model, EncoderOnlyConfig):
        return {**model.model_dump(exclude={"head"}), "preset": None}
    if isinstance(model, ModelConfig):
        names = ("width", "encoder", "positions", "dropout", "scale_embeddings", "embedding_norm")
        return {"preset": None, **model.model_dump(include=set(names))}
    if isinstance(model, LanguageModelConfig):
        encoder = {"kind": "causal", "decoder": model.decoder.model_dump()}
        return {
            "preset": None,
            **model.model_dump(include={"width", "positions", "dropout", "scale_embeddings"}),
            "encoder": encoder,
        }
    raise ConfigError(f"train.start: a model of kind {model.kind} has no encoder that could get a head: choose another")


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with changes. A group of another kind replaces the whole group."""
    merged = dict(base)
    for name, value in changes.items():
        old = merged.get(name)
        if (
            isinstance(value, Mapping)
            and isinstance(old, Mapping)
            and value.get("kind", old.get("kind")) == old.get("kind")
        ):
            merged[name] = _merge(old, value)
        else:
            merged[name] = value
    return merged
