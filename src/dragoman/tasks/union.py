"""Every task's run by the `kind` of its task; a new one is a folder beside this file and a line here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings, read_document
from dragoman.base.settings.yaml import parse_scalar
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.task import RunConfig

RUNS: Mapping[str, type[RunConfig]] = {"translation": TranslationRun, "language_model": LanguageModelRun}
DEFAULT = "translation"


def load_recipe(path: Path | None, overrides: Sequence[str]) -> Any:
    """The run that a recipe and overrides describe, as `load_settings` reads it; `task.kind` says of which class.

    Raises ConfigError as that does, and for a task that there is not.
    """
    return load_settings(path, overrides, run_class(path, overrides))


def run_class(path: Path | None, overrides: Sequence[str]) -> type[RunConfig]:
    """The class of the run that a recipe and overrides describe."""
    kind, where = _kind({} if path is None else read_document(Path(path)).content.get("task")), str(path)
    for override in overrides:
        name, equals, value = override.partition("=")
        if equals and name.strip() in ("task", "task.kind"):
            given = parse_scalar(value, override)
            kind, where = given if name.strip() == "task.kind" else _kind(given), "from the command line"
    if kind not in RUNS:
        raise ConfigError(f"task.kind: there is no '{kind}' ({where}); choose one of {', '.join(RUNS)}")
    return RUNS[kind]


def _kind(task: Any) -> Any:
    return task.get("kind", DEFAULT) if isinstance(task, Mapping) else DEFAULT
