"""`train` trains a model from a recipe; `settings` lists everything that a recipe can set."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.imports import import_modules, import_requested_modules, requested_modules
from dragoman.base.log import quietly
from dragoman.base.settings.load import PYTHON, Override, Overrides, Source, all_overrides, load_settings, read_document
from dragoman.base.settings.reference import Section, sections, select
from dragoman.checkpoint.folder import CONFIG
from dragoman.tasks.estimation import EstimatedRun, estimate_run
from dragoman.tasks.grid import grid_points, grid_recipe, train_grid
from dragoman.tasks.labelled.presets import choose_preset
from dragoman.tasks.registry import TASKS, TRANSLATION, TaskKind, open_job
from dragoman.tasks.seeds import train_seeds
from dragoman.training.run.loop import run
from dragoman.training.run.result import TrainingResult
from dragoman.training.task import RunConfig

Recipe = str | Path | Mapping[str, Any] | RunConfig | EstimatedRun | None
"""A YAML file, a run folder, nested settings, a run config, or None if the overrides contain all settings."""


def train(
    recipe: Recipe = None,
    overrides: Overrides = (),
    *,
    resume: bool = False,
    profile: bool = False,
    quiet: bool = False,
) -> TrainingResult:
    """Train a model of any task as specified by a recipe, like `dragoman train`.

    recipe: a YAML file, nested settings in the same format, or a run config (`TranslationRun`, `LanguageModelRun`). If
    `resume` is set, it may also be the folder of an interrupted run. overrides: values by dotted key, such as
    `{"train.max_minutes": 5}`, which replace those of the recipe. resume: continue the run in the folder `out`, if
    there is one. profile: measure the time of each part of the first updates. For several `seeds`, the result is a
    `SeedResults`; for a `grid`, it is a `GridResults`.

    After Ctrl-C, the current update is completed, everything is saved, and Interrupted is raised. Raises ConfigError
    for invalid settings and for a folder that contains another run, DataError, ResourceError and DivergenceError.

    >>> from dragoman import train
    >>> recipe = {
    ...     "data": {
    ...         "train": {"source": "train.en", "target": "train.de"},
    ...         "valid": {"source": "valid.en", "target": "valid.de"},
    ...     },
    ...     "model": {"preset": "tiny", "width": 32},
    ...     "out": "runs/first",
    ... }
    >>> result = train(recipe, {"train.max_steps": 2, "text.subword.size": 500}, quiet=True)
    >>> result.folder, result.step
    (PosixPath('runs/first'), 2)
    """
    with quietly(quiet):
        config = load_recipe(recipe, overrides)
        if (estimate := TASKS[config.task.kind].estimate) is not None:
            return estimate_run(config, estimate, resume, profile)

        def train_one(each: RunConfig) -> TrainingResult:
            return run(each, open_job, resume=resume, profile=profile)

        def train_all_seeds(each: RunConfig) -> TrainingResult:
            chosen = choose_preset(each, lambda short: run(short, open_job), resume)
            return train_seeds(chosen, train_one) if chosen.seeds > 1 else train_one(chosen)

        if not config.grid:
            return train_all_seeds(config)
        runs = {}
        for name, values in grid_points(config.grid).items():
            changed = [Override(tuple(key.split(".")), value, "grid") for key, value in values.items()]
            point = all_overrides(overrides, {"grid": {}, "out": str(config.out / name)}, changed)
            runs[name] = load_recipe(recipe, point)
        return train_grid(config, runs, train_all_seeds)


def load_recipe(recipe: Recipe, overrides: Overrides) -> Any:
    """Load a recipe with overrides as a run config, an instance of the class that `task.kind` selects.

    For a run folder, returns the config of its run, with `out` set to the folder's current path. Raises ConfigError for
    invalid settings, a folder without a run, and an unknown task.
    """
    if isinstance(recipe, RunConfig | EstimatedRun) and not overrides:
        return recipe
    if isinstance(recipe, str | Path) and (folder := Path(recipe)).is_dir():
        recipe, overrides = run_settings(folder), all_overrides({"out": str(folder)}, overrides)
    task = task_of(recipe, overrides)
    if requested := requested_modules():
        names = [*imports_of(recipe, overrides), *requested]
        overrides = all_overrides(overrides, {"imports": list(dict.fromkeys(names))})
    return load_settings(recipe, overrides, task.run)


def run_settings(folder: Path) -> Path:
    """Return the path of the settings file in a run folder. Raises ConfigError if the file does not exist."""
    path = grid_recipe(folder) or folder / CONFIG
    if not path.is_file():
        raise ConfigError(f"there is no run to resume in {folder}: it contains no {CONFIG}")
    return path


def task_of(recipe: Source, overrides: Overrides) -> TaskKind:
    """Return the task that a recipe and overrides select, after importing the modules in `imports`.

    Raises ConfigError for an unknown task, and for a module that cannot be imported.
    """
    import_requested_modules()
    import_modules(imports_of(recipe, overrides), PYTHON if isinstance(recipe, Mapping) else f"imports of {recipe}")
    if isinstance(recipe, RunConfig | EstimatedRun):
        return TASKS[recipe.task.kind]
    kind = _kind_name(read_document(recipe).content.get("task"))
    origin = PYTHON if isinstance(recipe, Mapping) else str(recipe)
    for override in all_overrides(overrides):
        if override.key in (("task",), ("task", "kind")):
            kind = override.value if len(override.key) > 1 else _kind_name(override.value)
            origin = override.origin
    if kind not in TASKS:
        raise ConfigError(f"task.kind: unknown kind '{kind}' ({origin}): expected one of {', '.join(TASKS)}")
    return TASKS[kind]


def imports_of(recipe: Source, overrides: Overrides) -> list[str]:
    """Return the value of `imports`. Raises ConfigError if it is not a list of names."""
    value = read_document(recipe).content.get("imports")
    for override in all_overrides(overrides):
        if override.key == ("imports",):
            value = override.value
    if not isinstance(value, list | tuple | None) or not all(isinstance(name, str) for name in value or ()):
        raise ConfigError(f"imports is a list of modules, as in imports=[own.py], not {value!r}")
    return list(value or ())


def _kind_name(section: Any) -> Any:
    return section.get("kind", TRANSLATION.name) if isinstance(section, Mapping) else TRANSLATION.name


def settings(path: str | None = None, task: str | None = None) -> list[Section]:
    """Return groups of settings, each followed by its subgroups.

    path: path of a group or a setting, such as `train.schedule`; None: all settings. task: value of `task.kind`
    (default: translation). Raises ConfigError for an unknown task and for an unknown path, with the closest path as a
    suggestion.

    >>> from dragoman import settings
    >>> section = settings("train.schedule")[0]
    >>> [setting.key for setting in section.settings][:2]
    ['train.schedule.kind', 'train.schedule.warmup']
    """
    if task is not None and task not in TASKS:
        raise ConfigError(f"unknown --task '{task}': expected one of {', '.join(TASKS)}")
    everything = sections(TASKS[task or TRANSLATION.name].run)
    selected = everything if path is None else select(everything, path)
    if not selected:
        keys = [key for section in everything for key in (section.path, *(row.key for row in section.settings))]
        same_name = [key for key in keys if key.rpartition(".")[2] == str(path).rpartition(".")[2]]
        closest = same_name or difflib.get_close_matches(str(path), keys, n=1, cutoff=0)
        raise ConfigError(
            f"there is no setting {path}; did you mean {closest[0]}? `dragoman settings` lists all settings"
        )
    return selected
