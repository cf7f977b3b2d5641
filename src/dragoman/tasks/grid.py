"""`train_grid` trains a recipe with every combination of the values of some settings, one run after the other."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.base.notebook import Card
from dragoman.base.settings.load import dump_settings
from dragoman.base.table import Table
from dragoman.checkpoint.folder import CONFIG
from dragoman.tasks.seeds import SEEDS_FILE, SeedResults, fields_of_best, naming_interruptions
from dragoman.training.run.result import TrainingResult
from dragoman.training.task import RunConfig

GRID_FILE = "grid.yaml"
"""The recipe of a grid, in the folder that contains its runs."""

_LARGEST = 1000
_FORBIDDEN = ("out", "grid", "seeds", "task", "imports")


@dataclass(frozen=True)
class GridResults(TrainingResult):
    """The results of all runs of a grid. The inherited fields are those of the best run on the validation set.

    settings: the values of each run by key, by the name of the run's folder. runs: the result of each run by this name.
    """

    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    runs: Mapping[str, TrainingResult] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([self._title, self.table().text(), self._best])

    def card(self) -> Card:
        """Return the table and the best run."""
        return Card(self._title, [self.table(), self._best])

    def table(self) -> Table:
        """Return the settings and the scores of each run."""
        first = next(iter(self.settings.values()))
        header = [*short_names(list(first)).values(), *(score.name for score in self.validation.scores)]
        rows = ([*map(_shown, self.settings[name].values()), *_scores(each)] for name, each in self.runs.items())
        return Table([header, *rows], names=len(first))

    @property
    def _title(self) -> str:
        return f"{len(self.runs)} runs; on the validation set"

    @property
    def _best(self) -> str:
        return f"{self.folder}: the best of them"


def grid_points(grid: Mapping[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """Return the values by key of each combination, by the name of its folder. The last key changes fastest.

    Raises ConfigError for a setting that cannot vary, a setting without values, and more than 1,000 combinations.
    """
    for key, values in grid.items():
        if key.split(".")[0] in _FORBIDDEN:
            raise ConfigError(f"grid: {key} cannot vary between the runs of a grid")
        if not values:
            raise ConfigError(f"grid: {key} has no values: list the ones to try")
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if len(combinations) > _LARGEST:
        raise ConfigError(f"grid: {len(combinations):,} combinations are too many: at most {_LARGEST:,}")
    short = short_names(list(grid))
    names = [
        "_".join(f"{short[key]}-{re.sub(r'[^A-Za-z0-9.+-]+', '-', _shown(value))}" for key, value in each.items())
        for each in combinations
    ]
    if len(set(names)) < len(names) or max(map(len, names)) > 100:
        names = [f"run-{number}" for number in range(1, len(names) + 1)]
    return dict(zip(names, combinations, strict=True))


def short_names(keys: list[str]) -> dict[str, str]:
    """Return the shortest ends of dotted keys by which they differ."""
    short = {}
    for key in keys:
        parts = key.split(".")
        ends = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        others = [f".{other}" for other in keys if other != key]
        short[key] = next((end for end in ends if not any(other.endswith(f".{end}") for other in others)), key)
    return short


def train_grid(
    config: RunConfig, runs: Mapping[str, RunConfig], train: Callable[[RunConfig], TrainingResult]
) -> GridResults:
    """Train all runs of a grid in folders of `config.out`, and summarise their validation scores.

    runs: the config of each run by its name in `grid_points`; all are valid. train: trains one run, or resumes it.
    Raises ConfigError if the folder contains another run, and the errors of `train`.
    """
    if any((config.out / name).exists() for name in (CONFIG, SEEDS_FILE)):
        raise ConfigError(f"{config.out} contains a run, and a grid would write its runs into it: choose another --out")
    config.out.mkdir(parents=True, exist_ok=True)
    atomic_write(config.out / GRID_FILE, dump_settings(config, explicit=True))
    results = {}
    points = grid_points(config.grid)
    for number, (name, each) in enumerate(runs.items(), start=1):
        listed = ", ".join(f"{key}={_shown(value)}" for key, value in points[name].items())
        info(f"Run {number} of {len(runs)}: {listed}")
        with naming_interruptions(f"run {number} of {len(runs)}"):
            results[name] = train(each)
    return GridResults(**fields_of_best(results.values(), config.train.metric), settings=points, runs=results)


def grid_recipe(folder: Path) -> Path | None:
    """Return the recipe of the grid whose runs a folder contains, or None."""
    path = folder / GRID_FILE
    return path if path.is_file() else None


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _scores(result: TrainingResult) -> list[str]:
    """Return the validation scores of a run, or the means and standard deviations of its seeds."""
    if isinstance(result, SeedResults):
        return [f"{each.mean:.{each.score.digits}f} ± {each.deviation:.{each.score.digits}f}" for each in result.scores]
    return [f"{each.value:.{each.digits}f}" for each in result.validation.scores]
