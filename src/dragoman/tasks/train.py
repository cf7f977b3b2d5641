"""`train` trains a model from a recipe; `settings` lists everything that a recipe can set."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.log import quietly
from dragoman.base.settings.load import PYTHON, Overrides, Source, all_overrides, load_settings, read_document
from dragoman.base.settings.reference import Section, sections, select
from dragoman.checkpoint.folder import CONFIG
from dragoman.tasks.kinds import TASKS, TRANSLATION, TaskKind, open_job
from dragoman.training.run.loop import TrainingResult, run
from dragoman.training.task import RunConfig

Recipe = str | Path | Mapping[str, Any] | RunConfig | None
"""A YAML file, a run folder, nested settings, a run, or None if overrides contain all settings."""


def train(
    recipe: Recipe = None,
    overrides: Overrides = (),
    *,
    resume: bool = False,
    profile: bool = False,
    quiet: bool = False,
) -> TrainingResult:
    """Train a model of any task as a recipe describes, like `dragoman train`.

    recipe: a YAML file, nested settings of the same form, or a run (`TranslationRun`, `LanguageModelRun`); with
    `resume` also the folder of an interrupted run. overrides: values by dotted key, such as `{"train.max_minutes": 5}`,
    which replace those of the recipe. resume: continue the run in the folder `out`, if it contains one. profile: report
    where the time of the first updates goes.

    Ctrl-C saves everything and ends the run after the current update with Interrupted. Raises ConfigError for invalid
    settings and for a folder that holds another run, DataError, ResourceError and DivergenceError.
    """
    with quietly(quiet):
        return run(load_recipe(recipe, overrides), open_job, resume=resume, profile=profile)


def load_recipe(recipe: Recipe, overrides: Overrides) -> Any:
    """Load the run that a recipe and overrides describe, of the class that belongs to `task.kind`.

    For a run folder, returns the run in that folder, with `out` set to the folder's current path. Raises ConfigError as
    `load_settings` does, for a folder without a run, and for an unknown task.
    """
    if isinstance(recipe, RunConfig) and not overrides:
        return recipe
    if isinstance(recipe, str | Path) and (folder := Path(recipe)).is_dir():
        recipe, overrides = run_settings(folder), all_overrides({"out": str(folder)}, overrides)
    return load_settings(recipe, overrides, task_of(recipe, overrides).run)


def run_settings(folder: Path) -> Path:
    """Return the settings file of the run in a folder. Raises ConfigError if there is none."""
    path = folder / CONFIG
    if not path.is_file():
        raise ConfigError(f"there is no run to resume in {folder}: it contains no {CONFIG}")
    return path


def task_of(recipe: Source, overrides: Overrides) -> TaskKind:
    """Return the task of the run that a recipe and overrides describe. Raises ConfigError for an unknown task."""
    if isinstance(recipe, RunConfig):
        return TASKS[recipe.task.kind]
    kind = _kind(read_document(recipe).content.get("task"))
    where = PYTHON if isinstance(recipe, Mapping) else str(recipe)
    for key, value, origin in all_overrides(overrides):
        if key in (("task",), ("task", "kind")):
            kind, where = value if len(key) > 1 else _kind(value), origin
    if kind not in TASKS:
        raise ConfigError(f"task.kind: unknown kind '{kind}' ({where}): expected one of {', '.join(TASKS)}")
    return TASKS[kind]


def _kind(task: Any) -> Any:
    return task.get("kind", TRANSLATION.name) if isinstance(task, Mapping) else TRANSLATION.name


def settings(path: str | None = None, task: str | None = None) -> list[Section]:
    """Return the groups of settings below `path`, such as `train.schedule`, each followed by its subgroups; None: all.

    task: the `task.kind` of the run (default: translation). Raises ConfigError for an unknown path, suggesting the
    closest one, and for an unknown task.
    """
    if task is not None and task not in TASKS:
        raise ConfigError(f"unknown --task '{task}': expected one of {', '.join(TASKS)}")
    everything = sections(TASKS[task or TRANSLATION.name].run)
    chosen = everything if path is None else select(everything, path)
    if not chosen:
        keys = [key for section in everything for key in (section.path, *(row.key for row in section.settings))]
        last = [key for key in keys if key.rpartition(".")[2] == str(path).rpartition(".")[2]]
        near = last or difflib.get_close_matches(str(path), keys, n=1, cutoff=0)
        raise ConfigError(f"there is no setting {path}; did you mean {near[0]}? `dragoman settings` lists all")
    return chosen
