"""The part of a model that predicts: its only head, the head of one of several tasks, or its generator."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.union import HeadConfig, SeveralHeadsConfig
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig


class PredictingPart(NamedTuple):
    """A body with one head.

    length: maximum number of tokens of an input in training; None: not limited. meta: the metadata of the folder, with
    the threshold of the task. body: the model whose states are the vectors of texts, if it is not `model`.
    """

    model: EncoderOnly
    head: HeadConfig
    length: int | None
    meta: Meta
    body: EncoderOnly | None


def choose_part(loaded: LoadedModel, config: EncoderOnlyConfig, task: str | None) -> PredictingPart:
    """Return the part of a loaded model that predicts.

    config: the settings of the model. task: name of the task; None: the only one. Raises ConfigError, with the names of
    the tasks, if there is no such task, and if the model has several tasks and none is named; ModelError for damaged
    settings.
    """
    data, meta = loaded.config.get("data"), loaded.meta
    model, head, body = loaded.model, config.head, None
    if isinstance(head, SeveralHeadsConfig):
        heads = head.heads or {}
        if task not in heads:
            problem = "is trained on several tasks" if task is None else f"has no task {task}"
            raise ConfigError(f"the model {problem}: choose one of {', '.join(heads)} with --task, or task=… in Python")
        section = loaded.config.get("tasks", {}).get(task)
        data = section.get("data") if isinstance(section, Mapping) else None
        model, head = model.of_task(task), heads[task]
        meta = meta.model_copy(update={"threshold": meta.thresholds.get(task)})
    elif task is not None:
        raise ConfigError(f"the model has only one task and no task {task}: remove --task, or task=… in Python")
    elif config.generator is not None:
        model, head, body = model.generator, config.generator.head, model
    return PredictingPart(model, head, _length(data, head), meta, body)


def task_names(model: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tasks of a model with several tasks; empty for any other model.

    model: the `model` section of config.yaml.
    """
    head = model.get("head")
    return tuple((head.get("heads") or {}) if isinstance(head, Mapping) and head.get("kind") == "several" else ())


def _length(data: Any, head: HeadConfig) -> int | None:
    """Return the maximum number of tokens in the `data` section of a task."""
    name = "block" if isinstance(head, MaskedLanguageModelHeadConfig) else "length"
    length = data.get(name) if isinstance(data, Mapping) else None
    if length is not None and not isinstance(length, int):
        raise ModelError(f"data.{name} in the model's config.yaml is {length!r}, not a number of tokens")
    return length
