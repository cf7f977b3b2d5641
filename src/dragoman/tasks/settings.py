"""`settings`: every setting of a training run, with its type, its default and what it means."""

import difflib

from dragoman.base.errors import ConfigError
from dragoman.base.settings.reference import Section, sections, select
from dragoman.tasks.union import DEFAULT, RUNS


def settings(path: str | None = None, task: str | None = None) -> list[Section]:
    """The groups of settings that `path` names, such as `train.schedule`, each before those inside it; None: all.

    task: of runs with this `task.kind` (default: translation). Raises ConfigError, which names the nearest, for a path
    or a task that there is not.
    """
    if task is not None and task not in RUNS:
        raise ConfigError(f"--task: there is no '{task}'; choose one of {', '.join(RUNS)}")
    everything = sections(RUNS[task or DEFAULT])
    chosen = everything if path is None else select(everything, path)
    if not chosen:
        keys = [key for section in everything for key in (section.path, *(row.key for row in section.settings))]
        last = [key for key in keys if key.rpartition(".")[2] == str(path).rpartition(".")[2]]
        near = last or difflib.get_close_matches(str(path), keys, n=1, cutoff=0)
        raise ConfigError(f"there is no setting {path}; did you mean {near[0]}? `dragoman settings` lists all")
    return chosen
