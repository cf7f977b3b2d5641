"""Starting a run from a trained model: which settings and vocabularies it has from the folder of `train.start`.

A run whose model is of the folder's kind continues that model: it has the folder's settings and vocabulary, and may
add tags. A run of another kind takes the parts that fit (`checkpoint.start`); it has the folder's vocabulary where its
own section `text` is left out.
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
from dragoman.models.kinds import kind_of
from dragoman.models.settings import PresetSettings
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.training.task import RunConfig

R = TypeVar("R", bound=RunConfig)
C = TypeVar("C", bound=Config)

# What may differ from the run that the model comes from: how it is trained further, not what it is.
_FREE = {"model": ("dropout", "preset", "embeddings.frozen"), "text": ("subword.dropout", "tags")}
_MOST_LISTED = 5


@dataclass(frozen=True)
class StartedRun:
    """A run with the settings that it has from its start.

    tokenizers: those of the folder, where the run has its vocabulary; None where it learns its own.
    continues: whether it continues the folder's whole model.
    """

    run: Any
    start: Start | None = None
    tokenizers: Tokenizers | None = None
    continues: bool = False


def load_start(run: RunConfig) -> StartedRun:
    """Read the folder of `train.start`, if one is set, and take what the sections model and text leave out from it.

    Raises ConfigError where a run that continues a model says something else than its folder, ModelError where the
    folder is not a model folder.
    """
    folder = run.train.start
    if folder is None:
        return StartedRun(run)
    start = Start.load(folder, run.train.start_parts)
    origin = Origin("train.start", folder, start.loaded.config)
    given: Any = run
    kind = kind_of({"kind": given.model.kind})
    has_text = "text" in type(run).model_fields
    if kind == start.kind and start.parts is None and has_text:
        model, text = agreed(run, "model", type(given.model), origin), agreed(run, "text", TextConfig, origin)
        run = run.model_copy(update={"model": model, "text": text})
        return StartedRun(run, start, start.loaded.text, continues=True)
    if "text" in run.model_fields_set or start.loaded.text is None:
        return StartedRun(run, start)
    if not has_text:
        return StartedRun(run, start, start.loaded.text)
    text = parse_settings(origin.config.get("text") or {}, TextConfig, f"in section text of {folder / CONFIG}")
    tokenizers = start.loaded.text
    if len(kind.sides) == 1:
        only = getattr(tokenizers, kind.sides[0])
        text, tokenizers = TextConfig(subword=text.subword), Tokenizers(only, only)
    return StartedRun(run.model_copy(update={"text": text}), start, tokenizers)


@dataclass(frozen=True)
class Origin:
    """A model that a run takes settings from. setting: the key that names its folder; config: its own settings."""

    setting: str
    folder: Path
    config: Mapping[str, Any]


def agreed(run: RunConfig, name: str, section: type[C], origin: Origin) -> C:
    """The section that the run will have. Raises ConfigError where it says something else than the origin's."""
    settings, different = compared(run, name, section, origin)
    if different:
        raise ConfigError(
            f"{origin.setting}={origin.folder} is another model than this run asks for: "
            f"{', '.join(different[:_MOST_LISTED])}. Leave these settings out, and they are taken from the folder"
        )
    return settings


def compared(run: RunConfig, name: str, section: type[C], origin: Origin) -> tuple[C, list[str]]:
    """A section, completed by the origin's, and the settings that must not differ between the two but do."""
    given: C = getattr(run, name)
    if name not in origin.config:
        return given, []
    stored = parse_settings(origin.config[name], section, f"in section {name} of {origin.folder / CONFIG}")
    if name not in run.model_fields_set:
        return stored, []
    if isinstance(given, PresetSettings):
        given = given.chosen_as(stored)  # type: ignore[arg-type]
    before, now = flatten(stored.model_dump(mode="json")), flatten(given.model_dump(mode="json"))
    return given, [
        f"{name}.{key} ({now.get(key)!r} here, {before.get(key)!r} there)"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and not any(f"{key}.".startswith(f"{free}.") for free in _FREE[name])
    ]
