"""Settings and vocabularies of a run that starts from a trained model, the model folder `train.start`.

A run with the same kind of model as the folder continues training that model: it uses the folder's settings and
vocabulary, and may add tags. A run with a different kind of model copies the parts that fit (`checkpoint.start`). It
uses the folder's vocabulary unless its recipe has a `text` section.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import flatten, parse_settings
from dragoman.checkpoint.folder import CONFIG
from dragoman.checkpoint.start import Start
from dragoman.models.kinds.registry import kind_of
from dragoman.models.settings import PresetSettings
from dragoman.tasks.estimation import EstimatedRun
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.training.task import RunConfig

R = TypeVar("R", bound=RunConfig)
C = TypeVar("C", bound=Config)

# Settings that may differ from the folder's, because they affect only further training.
_CHANGEABLE = {
    "model": ("dropout", "preset", "embeddings.frozen"),
    "text": ("subword.dropout", "tags", "source_prefix"),
}
_MAX_LISTED = 5


@dataclass(frozen=True)
class StartedRun:
    """A run whose settings are completed from the model that it starts from.

    tokenizers: the folder's tokenizers if the run uses its vocabulary; None if the run learns a new vocabulary.
    continues: True if the run continues training the folder's whole model.
    """

    run: Any
    start: Start | None = None
    tokenizers: Tokenizers | None = None
    continues: bool = False


def load_start(run: RunConfig | EstimatedRun) -> StartedRun:
    """Read the model folder `train.start`, if it is set, and complete the `model` and `text` sections from it.

    Raises ConfigError if the run continues training a model and contradicts its settings, ModelError if the folder is
    not a model folder.
    """
    if isinstance(run, EstimatedRun) or (folder := run.train.start) is None:
        return StartedRun(run)
    start = Start.load(folder, run.train.start_parts)
    origin = Origin("train.start", folder, start.loaded.config)
    settings: Any = run
    kind = kind_of({"kind": settings.model.kind})
    has_text = "text" in type(run).model_fields
    if kind == start.kind and start.parts is None and has_text:
        model, text = (
            complete_section(run, "model", type(settings.model), origin),
            complete_section(run, "text", TextConfig, origin),
        )
        run = run.model_copy(update={"model": model, "text": text})
        tokenizers = start.loaded.text
        if tokenizers is not None:
            tokenizers = tokenizers.with_source_prefix(text.source_prefix)
        return StartedRun(run, start, tokenizers, continues=True)
    if "text" in run.model_fields_set or start.loaded.text is None:
        return StartedRun(run, start)
    if not has_text:
        return StartedRun(run, start, start.loaded.text)
    text = stored_text(origin.config, folder)
    tokenizers = start.loaded.text
    if len(kind.sides) == 1:
        tokenizer = getattr(tokenizers, kind.sides[0]).with_prefix("")
        text, tokenizers = text.one_sided(), Tokenizers(tokenizer, tokenizer)
    return StartedRun(run.model_copy(update={"text": text}), start, tokenizers)


def stored_text(config: Mapping[str, Any], folder: Path) -> TextConfig:
    """Return the `text` section of a model folder's settings."""
    return parse_settings(config.get("text") or {}, TextConfig, f"in the text section of {folder / CONFIG}")


@dataclass(frozen=True)
class Origin:
    """A trained model whose settings a run uses.

    setting: key of the recipe that names the model folder. config: settings in the folder's config.yaml.
    """

    setting: str
    folder: Path
    config: Mapping[str, Any]


def complete_section(run: RunConfig, name: str, section_type: type[C], origin: Origin) -> C:
    """Return a section of the run, completed from `origin`. Raises ConfigError if the two contradict each other."""
    settings, differences = compare_section(run, name, section_type, origin)
    if differences:
        raise ConfigError(
            f"{origin.setting}={origin.folder} does not match the settings of this run: "
            f"{', '.join(differences[:_MAX_LISTED])}. Remove these settings to use the folder's"
        )
    return settings


def compare_section(run: RunConfig, name: str, section_type: type[C], origin: Origin) -> tuple[C, list[str]]:
    """Return a section of the run, completed from `origin`, and a list of the settings that contradict `origin`."""
    section: Any = getattr(run, name)
    if name not in origin.config:
        return section, []
    where = f"in the {name} section of {origin.folder / CONFIG}"
    stored: Any = parse_settings(origin.config[name], section_type, where)
    if name not in run.model_fields_set:
        return stored, []
    if isinstance(section, PresetSettings):
        section = section.with_stored_choices(stored)
    ours, theirs = flatten(section.model_dump(mode="json")), flatten(stored.model_dump(mode="json"))
    return section, [
        f"{name}.{key} ({ours.get(key)!r} in this run, {theirs.get(key)!r} in the folder)"
        for key in sorted({*ours, *theirs})
        if ours.get(key) != theirs.get(key)
        and not any(f"{key}.".startswith(f"{prefix}.") for prefix in _CHANGEABLE[name])
    ]
