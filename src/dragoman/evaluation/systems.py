"""`find_systems`: which model folders are the same system, trained with several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.checkpoint.folder import CONFIG, read_config
from dragoman.figures.curves import Curves
from dragoman.tasks.seeds import seed_folders
from dragoman.training.progress.training_curves import read_run, system_curves


@dataclass(frozen=True)
class System:
    """A system: the models of the same settings with several seeds. name: in tables."""

    name: str
    folders: tuple[Path, ...]


def find_systems(paths: Sequence[str | Path]) -> list[System]:
    """Group model folders to systems, in the order of their first folders.

    A folder of a run with several seeds stands for its models, and any other folder without a model for the models that
    it contains. Models whose settings differ only in the seed and in the folder are one system, named after the folder
    that contains them.

    Raises ConfigError for a folder without models and for one that is given twice.
    """
    folders = [each for path in paths for each in _models_in(Path(path))]
    if repeated := [each for number, each in enumerate(folders) if each in folders[:number]]:
        raise ConfigError(f"{repeated[0]} is given twice: give each model once")
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        groups.setdefault(_settings(folder), []).append(folder)
    for group in groups.values():
        _warn_of_equal_seeds(group)
    parents = [{each.parent for each in group} for group in groups.values()]
    systems = []
    for group, own in zip(groups.values(), parents, strict=True):
        parent = next(iter(own))
        is_own = len(group) > 1 and len(own) == 1 and sum(parent in each for each in parents) == 1
        systems.append(System(str(parent if is_own else group[0]), tuple(group)))
    return systems


def system_figure(paths: Sequence[str | Path]) -> Curves:
    """Return the learning curves of systems (`system_curves`).

    paths: as in `find_systems`, whose errors are raised. Raises DataError for a model without the log of its training.
    """
    return system_curves({each.name: [read_run(folder) for folder in each.folders] for each in find_systems(paths)})


def _models_in(path: Path) -> list[Path]:
    if seeds := seed_folders(path):
        return seeds
    if (path / CONFIG).is_file():
        return [path]
    inner = [model for each in sorted(path.glob(f"*/{CONFIG}")) for model in _models_in(each.parent)]
    if not inner:
        raise ConfigError(f"{path} is not a model folder and contains none: give the folders of trained models")
    return inner


def _settings(folder: Path) -> str:
    """Return the settings of a model as text, without what differs between seeds. An imported model is by itself."""
    config: dict[str, Any] = read_config(folder)
    train = config.get("train")
    if not isinstance(train, dict):
        return str(folder)
    ignored = {"out", "seeds"}
    rest = {key: value for key, value in config.items() if key not in ignored}
    return repr({**rest, "train": {key: value for key, value in train.items() if key != "seed"}})


def _warn_of_equal_seeds(folders: Sequence[Path]) -> None:
    seeds = [(read_config(each).get("train") or {}).get("seed") for each in folders]
    if len(folders) > 1 and len(set(seeds)) < len(seeds):
        listed = ", ".join(f"{folder} ({seed})" for folder, seed in zip(folders, seeds, strict=True))
        warn(f"these models have the same settings and not even different seeds, so they say less: {listed}")
