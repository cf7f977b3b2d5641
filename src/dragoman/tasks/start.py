"""Starting a run from a trained model: the settings and vocabularies taken from the folder of `train.start`.

A run with the same kind of model as the folder continues that model: it uses the folder's settings and vocabulary, and
may add tags. A run with another kind of model takes the parts that fit (`checkpoint.start`), and uses the folder's
vocabulary if its own section `text` is not given.
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

# Settings that may differ from those of the folder: they affect further training, not the model itself.
_FREE = {"model": ("dropout", "preset", "embeddings.frozen"), "text": ("subword.dropout", "tags")}
_MOST_LISTED = 5


@dataclass(frozen=True)
class StartedRun:
    """A run, completed with the settings of the model that it starts from.

    tokenizers: the folder's, if the run uses its vocabulary; None if the run learns its own. continues: whether the
    run continues training the folder's whole model.
    """

    run: Any
    start: Start | None = None
    tokenizers: Tokenizers | None = None
    continues: bool = False


def load_start(run: RunConfig) -> StartedRun:
    """Read the folder of `train.start`, if it is set, and complete the sections `model` and `text` from it.

    Raises ConfigError if the settings of a run that continues a model contradict its folder, ModelError if the folder
    is not a model folder.
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
        model, text = (
            complete_section(run, "model", type(given.model), origin),
            complete_section(run, "text", TextConfig, origin),
        )
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
    """A model whose settings a run uses. setting: the key that names its folder; config: its settings."""

    setting: str
    folder: Path
    config: Mapping[str, Any]


def complete_section(run: RunConfig, name: str, section: type[C], origin: Origin) -> C:
    """Complete a section of the run from the origin's. Raises ConfigError if the two contradict each other."""
    settings, different = compare_section(run, name, section, origin)
    if different:
        raise ConfigError(
            f"{origin.setting}={origin.folder} does not match the settings of this run: "
            f"{', '.join(different[:_MOST_LISTED])}. Remove these settings to use those of the folder"
        )
    return settings


def compare_section(run: RunConfig, name: str, section: type[C], origin: Origin) -> tuple[C, list[str]]:
    """Complete a section of the run from the origin's; also returns the settings that differ but must not."""
    given: C = getattr(run, name)
    if name not in origin.config:
        return given, []
    stored = parse_settings(origin.config[name], section, f"in section {name} of {origin.folder / CONFIG}")
    if name not in run.model_fields_set:
        return stored, []
    if isinstance(given, PresetSettings):
        given = given.with_stored_choices(stored)  # type: ignore[arg-type]
    before, now = flatten(stored.model_dump(mode="json")), flatten(given.model_dump(mode="json"))
    return given, [
        f"{name}.{key} ({now.get(key)!r} here, {before.get(key)!r} there)"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and not any(f"{key}.".startswith(f"{free}.") for free in _FREE[name])
    ]
