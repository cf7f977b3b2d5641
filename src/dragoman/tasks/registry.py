"""The registry of tasks: `task.kind` of a recipe selects the config class of the run and the job that trains the model.

To add a task, create a folder with a `RunConfig` and a `Job`, and register a `TaskKind` in this file. A task without
the training loop has an `EstimatedRun` and a function that estimates the model instead.
"""

from dataclasses import dataclass
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.models.settings import ModelSettings
from dragoman.tasks.denoising.config import DenoisingRun
from dragoman.tasks.denoising.job import DenoisingJob
from dragoman.tasks.estimation import Estimate, EstimatedRun
from dragoman.tasks.labelled.config import AnsweringRun, ClassificationRun, ParsingRun, RegressionRun, TaggingRun
from dragoman.tasks.labelled.jobs import AnsweringJob, ClassificationJob, RegressionJob, TaggingJob
from dragoman.tasks.labelled.parsing import ParsingJob
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.language_model.job import LanguageModelJob
from dragoman.tasks.masked_language_model.config import MaskedLanguageModelRun
from dragoman.tasks.masked_language_model.job import MaskedLanguageModelJob
from dragoman.tasks.multi_task.config import MultiTaskRun
from dragoman.tasks.multi_task.job import MultiTaskJob
from dragoman.tasks.multi_task.translation import open_translation
from dragoman.tasks.ngram_language_model.config import NgramRun
from dragoman.tasks.ngram_language_model.estimate import estimate_ngram_model
from dragoman.tasks.nodes.config import NodesRun
from dragoman.tasks.nodes.job import NodesJob
from dragoman.tasks.statistical_translation.config import StatisticalRun
from dragoman.tasks.statistical_translation.estimate import estimate
from dragoman.tasks.text_to_text.config import SummarizationRun, TextToTextRun
from dragoman.tasks.text_to_text.job import open_text_to_text
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.task import Job, OpenJob, RunConfig


@dataclass(frozen=True)
class TaskKind:
    """A kind of task.

    name: the value of `task.kind`. run: the config class of its runs. open_job: a function that opens the job of a run.
    placeholders: overrides for required settings that do not affect the model. With these values, `describe` can load
    an incomplete recipe. estimate: for tasks without the training loop, the function that estimates the model; either
    `open_job` or `estimate` is None.
    """

    name: str
    run: type[RunConfig] | type[EstimatedRun]
    open_job: OpenJob | None
    placeholders: tuple[str, ...] = ("out=run",)
    estimate: Estimate | None = None

    @property
    def model(self) -> type[ModelSettings]:
        """The config class of the `model` section."""
        model: type[ModelSettings] = self.run.model_fields["model"].annotation  # type: ignore[assignment]
        return model


TASKS: dict[str, TaskKind] = {}
"""All registered tasks by name."""


def register(task: TaskKind) -> TaskKind:
    """Add a task to the registry and return it. Raises ValueError if another task has the same name."""
    if TASKS.setdefault(task.name, task) != task:
        raise ValueError(f"there is already a task called {task.name!r}: choose another name")
    return task


TRANSLATION = register(
    TaskKind(
        "translation",
        TranslationRun,
        open_translation,
        ("data={train: {pairs: corpus.tsv}, valid: {pairs: corpus.tsv}}", "out=run"),
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
NGRAM_LANGUAGE_MODEL = register(
    TaskKind(
        "ngram_language_model",
        NgramRun,
        None,
        ("data={train: {text: corpus.txt}, valid: {text: corpus.txt}}", "out=run"),
        estimate_ngram_model,
    )
)
MASKED_LANGUAGE_MODEL = register(
    TaskKind(
        "masked_language_model",
        MaskedLanguageModelRun,
        MaskedLanguageModelJob,
        ("data={train: {text: corpus.txt}, valid: {text: corpus.txt}}", "out=run"),
    )
)
DENOISING = register(
    TaskKind(
        "denoising",
        DenoisingRun,
        DenoisingJob,
        ("data={train: {text: corpus.txt}, valid: {text: corpus.txt}}", "out=run"),
    )
)
SUMMARIZATION = register(
    TaskKind(
        "summarization",
        SummarizationRun,
        open_text_to_text,
        ("data={train: {pairs: corpus.jsonl}, valid: {pairs: corpus.jsonl}}", "out=run"),
    )
)
TEXT_TO_TEXT = register(
    TaskKind(
        "text_to_text",
        TextToTextRun,
        open_text_to_text,
        ("data={train: {labelled: examples.tsv}, valid: {labelled: examples.tsv}}", "out=run"),
    )
)
STATISTICAL_TRANSLATION = register(
    TaskKind(
        "statistical_translation",
        StatisticalRun,
        None,
        ("data={train: {pairs: corpus.tsv}, valid: {pairs: corpus.tsv}}", "out=run"),
        estimate,
    )
)
_LABELLED = ("data={train: examples.tsv, valid: examples.tsv}", "out=run")
for _kind, _run, _job in (
    ("classification", ClassificationRun, ClassificationJob),
    ("regression", RegressionRun, RegressionJob),
    ("tagging", TaggingRun, TaggingJob),
    ("question_answering", AnsweringRun, AnsweringJob),
):
    register(TaskKind(_kind, _run, _job, _LABELLED))
PARSING = register(
    TaskKind("parsing", ParsingRun, ParsingJob, ("data={train: train.mrg, valid: valid.mrg}", "out=run"))
)
MULTI_TASK = register(
    TaskKind(
        "multi_task",
        MultiTaskRun,
        MultiTaskJob,
        ("tasks={labels: {kind: classification, data: {train: examples.tsv, valid: examples.tsv}}}", "out=run"),
    )
)
NODES = register(
    TaskKind("nodes", NodesRun, NodesJob, ("data={nodes: nodes.tsv, edges: edges.tsv}", "out=run")),
)


def open_job(run: Any) -> Job:
    """Run all cheap checks and open the job of a run of any task.

    Raises ConfigError, also for a task without the training loop, and DataError.
    """
    task = TASKS[run.task.kind]
    if task.open_job is None:
        raise ConfigError(f"task.kind={task.name} estimates its model from counts, without training updates")
    return task.open_job(run)
