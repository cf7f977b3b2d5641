"""Every task's run by the `kind` of its task; a new one is a folder beside this file and a line here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import PYTHON, Overrides, Source, all_overrides, load_settings, read_document
from dragoman.checkpoint.folder import CONFIG
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.task import RunConfig

RUNS: Mapping[str, type[RunConfig]] = {"translation": TranslationRun, "language_model": LanguageModelRun}
DEFAULT = "translation"


Recipe = str | Path | Mapping[str, Any] | RunConfig | None
"""A YAML file, a run folder, nested settings, a run, or nothing, where overrides say it all."""


def load_recipe(recipe: Recipe, overrides: Overrides) -> Any:
    """The run that a recipe and overrides describe, as `load_settings` reads it; `task.kind` says of which class.

    Of a run folder it is the run that it holds, where the folder is now. Raises ConfigError as `load_settings` does,
    for a folder without a run, and for a task that there is not.
    """
    if isinstance(recipe, RunConfig) and not overrides:
        return recipe
    if isinstance(recipe, str | Path) and (folder := Path(recipe)).is_dir():
        recipe, overrides = run_settings(folder), all_overrides({"out": str(folder)}, overrides)
    return load_settings(recipe, overrides, run_class(recipe, overrides))


def run_settings(folder: Path) -> Path:
    """The settings of the run in a folder. Raises ConfigError where there is none."""
    path = folder / CONFIG
    if not path.is_file():
        raise ConfigError(f"there is no run to resume in {folder}: it holds no {CONFIG}")
    return path


def run_class(recipe: Source, overrides: Overrides) -> type[RunConfig]:
    """The class of the run that a recipe and overrides describe."""
    if isinstance(recipe, RunConfig):
        return type(recipe)
    kind = _kind(read_document(recipe).content.get("task"))
    where = PYTHON if isinstance(recipe, Mapping) else str(recipe)
    for key, value, origin in all_overrides(overrides):
        if key in (("task",), ("task", "kind")):
            kind, where = value if len(key) > 1 else _kind(value), origin
    if kind not in RUNS:
        raise ConfigError(f"task.kind: there is no '{kind}' ({where}); choose one of {', '.join(RUNS)}")
    return RUNS[kind]


def _kind(task: Any) -> Any:
    return task.get("kind", DEFAULT) if isinstance(task, Mapping) else DEFAULT
