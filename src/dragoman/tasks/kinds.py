"""Kinds of tasks: `task.kind` of a recipe determines the class of its run and the job that trains.

To add a task, write a folder with a `RunConfig` and a `Job`, and register a record here.
"""

from dataclasses import dataclass
from typing import Any

from dragoman.models.settings import ModelSettings
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.language_model.job import LanguageModelJob
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.multitask import open_translation
from dragoman.training.task import Job, OpenJob, RunConfig


@dataclass(frozen=True)
class TaskKind:
    """One kind of task.

    name: the value of `task.kind`. run: the class of a run's settings. open_job: opens the job of such a run.
    placeholders: values of required settings that the model does not depend on, as overrides, so that the model of an
    incomplete recipe can be described.
    """

    name: str
    run: type[RunConfig]
    open_job: OpenJob
    placeholders: tuple[str, ...] = ("out=run",)

    @property
    def model(self) -> type[ModelSettings]:
        """The config class of the section `model`."""
        model: type[ModelSettings] = self.run.model_fields["model"].annotation  # type: ignore[assignment]
        return model


TASKS: dict[str, TaskKind] = {}
"""All registered tasks by name."""


def register(task: TaskKind) -> TaskKind:
    """Add a task to the registry and return it. Raises ValueError for a name in use."""
    if TASKS.setdefault(task.name, task) != task:
        raise ValueError(f"there is another task called {task.name!r}: choose another name")
    return task


TRANSLATION = register(
    TaskKind(
        "translation",
        TranslationRun,
        open_translation,
        ("data={train: {tsv: corpus.tsv}, valid: {tsv: corpus.tsv}}", "out=run"),
    )
)
LANGUAGE_MODEL = register(
    TaskKind(
        "language_model",
        LanguageModelRun,
        LanguageModelJob,
        ("data={train: {text: corpus.txt}, valid: {text: corpus.txt}}", "out=run"),
    )
)


def open_job(run: Any) -> Job:
    """Open the job of a run of any task. Raises ConfigError and DataError for problems that are cheap to find."""
    return TASKS[run.task.kind].open_job(run)
