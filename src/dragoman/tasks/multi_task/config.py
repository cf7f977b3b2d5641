"""`MultiTaskRun`, the settings of a run that trains one encoder with several heads, one for each task."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from torch import nn

from dragoman.base.settings.config import Config, kinds, union_members
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig
from dragoman.models.heads.union import SeveralHeadsConfig, TaskHeadConfig, TreeHeadConfig
from dragoman.tasks.head_run import HeadRun
from dragoman.tasks.labelled.config import (
    AnsweringMetric,
    AnsweringRun,
    ClassificationMetric,
    ClassificationRun,
    LabelledLoopConfig,
    LabelledTextsConfig,
    ParsingMetric,
    ParsingRun,
    QuestionsConfig,
    RegressionMetric,
    RegressionRun,
    TaggedDataConfig,
    TaggingMetric,
    TaggingRun,
    TreebanksConfig,
    check_smoothing,
)
from dragoman.tasks.labelled.objective import ClassObjectiveConfig, TreeObjectiveConfig
from dragoman.tasks.language_model.config import LanguageModelObjectiveConfig, TextCrossEntropyConfig
from dragoman.tasks.masked_language_model.config import MaskedDataConfig, MaskedLanguageModelRun
from dragoman.tasks.multi_task.mixing import MixingConfig, TogetherConfig
from dragoman.training.config import LoopConfig
from dragoman.training.task import Task

MEAN, LOSS = "mean", "loss"
"""The metrics that combine all tasks."""

_RESERVED = frozenset({MEAN, LOSS, *dir(nn.ModuleDict())})


class MemberTask(Config):
    """Base class of the tasks of a run. A task may also have an `objective`.

    run_class: the run that trains this task alone.
    """

    run_class: ClassVar[type[HeadRun]]

    kind: str
    weight: float = Field(1.0, gt=0, description="λ, weight of the task's mean loss per label.")
    data: Any = Field(description="Examples and batches.")
    head: TaskHeadConfig = Field(description="Head of the task.")
    metric: str = Field(description="The task's own metric.")

    @property
    def valid_names(self) -> str:
        """Names of the validation sets, for messages."""
        return str(self.data.names("valid"))

    def run_alone(self, run: "MultiTaskRun") -> Any:
        """Return the run that trains only this task. run: the whole run."""
        run_class: Any = self.run_class
        fields = run_class.model_fields
        loop = {name: getattr(run.train, name) for name in LoopConfig.model_fields if name != "metric"}
        own = {name: getattr(self, name) for name in ("metric", "objective") if name in type(self).model_fields}
        return run_class(
            task=fields["task"].annotation(),
            data=self.data,
            text=run.text,
            model=run.model.model_copy(update={"head": self.head}),
            train=fields["train"].annotation(**loop, **own),
            out=run.out,
        )

    def with_choices(self, run: Any) -> Self:
        """Return the settings, with those that `run`, a prepared run of this task alone, has chosen from the data."""
        return self.model_copy(update={"data": run.data, "head": run.model.head, "metric": run.train.metric})

    def with_stored_choices(self, stored: "MemberTask") -> Self:
        """Return the settings, with those that depend on the data copied from the task of a stored run."""
        own, resolved = self.head.model_dump(), stored.head.model_dump()
        head = {name: resolved.get(name) if value is None else value for name, value in own.items()}
        return self.model_copy(
            update={
                "data": self.data.with_stored_choices(stored.data),
                "head": type(self.head).model_validate(head),
                "metric": stored.metric if self.metric == "auto" else self.metric,
            }
        )


class ClassificationMember(MemberTask):
    """Classification of texts, or of pairs of texts, as one of several tasks."""

    run_class: ClassVar[type[HeadRun]] = ClassificationRun

    kind: Literal["classification"] = "classification"
    data: LabelledTextsConfig = Field(description="Examples and batches.")
    head: ClassificationHeadConfig = Field(ClassificationHeadConfig(), description="Head of the task.")
    metric: ClassificationMetric = Field("accuracy", description="The task's own metric.")
    objective: ClassObjectiveConfig = Field(ClassObjectiveConfig(), description="Training objective.")


class RegressionMember(MemberTask):
    """Prediction of a number for each text or pair of texts, as one of several tasks."""

    run_class: ClassVar[type[HeadRun]] = RegressionRun

    kind: Literal["regression"] = "regression"
    data: LabelledTextsConfig = Field(description="Examples and batches.")
    head: RegressionHeadConfig = Field(RegressionHeadConfig(), description="Head of the task.")
    metric: RegressionMetric = Field("pearson", description="The task's own metric.")


class TaggingMember(MemberTask):
    """Prediction of a tag for each word of a sentence, as one of several tasks."""

    run_class: ClassVar[type[HeadRun]] = TaggingRun

    kind: Literal["tagging"] = "tagging"
    data: TaggedDataConfig = Field(description="Sentences and batches.")
    head: TaggingHeadConfig = Field(TaggingHeadConfig(), description="Head of the task.")
    metric: TaggingMetric = Field("auto", description="The task's own metric.")
    objective: ClassObjectiveConfig = Field(ClassObjectiveConfig(), description="Training objective.")


class AnsweringMember(MemberTask):
    """Extractive question answering as one of several tasks."""

    run_class: ClassVar[type[HeadRun]] = AnsweringRun

    kind: Literal["question_answering"] = "question_answering"
    data: QuestionsConfig = Field(description="Questions and batches.")
    head: SpanHeadConfig = Field(SpanHeadConfig(), description="Head of the task.")
    metric: AnsweringMetric = Field("f1", description="The task's own metric.")


class ParsingMember(MemberTask):
    """Prediction of the constituency tree of each sentence as one of several tasks."""

    run_class: ClassVar[type[HeadRun]] = ParsingRun

    kind: Literal["parsing"] = "parsing"
    data: TreebanksConfig = Field(description="Treebanks and batches.")
    head: TreeHeadConfig = Field(TreeDecoderHeadConfig(), description="Head of the task.")
    metric: ParsingMetric = Field("bracket_f1", description="The task's own metric.")
    objective: TreeObjectiveConfig = Field(TreeObjectiveConfig(), description="Training objective.")

    @model_validator(mode="after")
    def _check_objective(self) -> Self:
        check_smoothing(self.head.kind, self.objective, "objective")
        return self


class MaskedMember(MemberTask):
    """Restoring masked tokens of a text beside labelled tasks. The vocabulary is that of train.start."""

    run_class: ClassVar[type[HeadRun]] = MaskedLanguageModelRun

    kind: Literal["masked_language_model"] = "masked_language_model"
    data: MaskedDataConfig = Field(description="Corpora, cleaning, masking, batches.")
    head: MaskedLanguageModelHeadConfig = Field(MaskedLanguageModelHeadConfig(), description="Head of the task.")
    metric: Literal["accuracy", "loss"] = Field(
        "accuracy", description="The task's own metric, which the mean of the tasks does not include."
    )
    objective: LanguageModelObjectiveConfig = Field(TextCrossEntropyConfig(), description="Training objective.")

    @property
    def valid_names(self) -> str:
        """Names of the validation sets, for messages."""
        return self.data.valid_names

    @model_validator(mode="after")
    def _check_vocabulary(self) -> Self:
        if self.data.vocabulary_of is not None:
            raise ValueError("all tasks share the vocabulary of train.start: remove data.vocabulary_of")
        return self


MemberTaskConfig = Annotated[
    ClassificationMember | RegressionMember | TaggingMember | AnsweringMember | ParsingMember | MaskedMember,
    Field(discriminator="kind"),
]


class MultiTask(Task):
    """Several tasks with labels at once, with one encoder. YAML: `task: {kind: multi_task}`."""

    kind: Literal["multi_task"] = "multi_task"


class MultiTaskLoopConfig(LabelledLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: str = Field(
        MEAN,
        description="Validation metric that determines the best checkpoint. mean: the mean of the tasks' own metrics "
        "in percent; correlations are multiplied by 100, as in GLUE. loss: Σ λ_t L_t. Otherwise, the name of a task: "
        "its own metric.",
    )


class MultiTaskRun(HeadRun):
    """A run that trains several tasks with labels: the top level with `task: {kind: multi_task}`.

    YAML: `tasks: {sst2: {kind: classification, data: {train: train.tsv, valid: dev.tsv}}}`.
    """

    head: ClassVar[str] = "several"

    task: MultiTask = Field(description="Task to learn.")
    tasks: dict[str, MemberTaskConfig] = Field(
        min_length=1, description="Tasks by name, each with its own data, head, weight and metric."
    )
    mixing: MixingConfig = Field(TogetherConfig(), description="How the batches of the tasks are mixed.")
    train: MultiTaskLoopConfig = Field(MultiTaskLoopConfig(), description="Training loop.")

    @model_validator(mode="before")
    @classmethod
    def _add_heads(cls, values: Any) -> Any:
        """Add the heads of the tasks to the model."""
        if not isinstance(values, dict):
            return values
        tasks, model = values.get("tasks"), values.get("model", {})
        head = model.get("head", {}) if isinstance(model, dict) else None
        if not isinstance(tasks, dict) or not isinstance(head, dict) or head.get("heads") is not None:
            return values
        heads = {name: _head(task) for name, task in tasks.items()}
        if None in heads.values() or any(map(_name_problem, tasks)):
            return values  # another validator raises an error
        return {**values, "model": {**model, "head": {**head, "heads": heads}}}

    @field_validator("tasks")
    @classmethod
    def _check_names(cls, tasks: dict[str, MemberTask]) -> dict[str, MemberTask]:
        for problem in filter(None, map(_name_problem, tasks)):
            raise ValueError(problem)
        return tasks

    @model_validator(mode="after")
    def _check_mixture(self) -> Self:
        metric = self.train.metric
        if metric not in (MEAN, LOSS, *self.tasks):
            listed = ", ".join((MEAN, LOSS, *self.tasks))
            raise ValueError(f"train.metric is {metric}, but there is no such task: expected one of {listed}")
        masked = [name for name, task in self.tasks.items() if isinstance(task, MaskedMember)]
        if len(masked) == len(self.tasks):
            raise ValueError("no task has labels: add one, or set task.kind=masked_language_model")
        if masked and self.train.start is None:
            raise ValueError(
                f"tasks.{masked[0]} is a masked language model, which uses the vocabulary of train.start: set it"
            )
        losses = [name for name, task in self.tasks.items() if task.metric == LOSS and name not in masked]
        if metric == MEAN and losses:
            raise ValueError(
                f"train.metric=mean averages percentages, but tasks.{losses[0]}.metric is loss: choose another metric "
                "of the task, or set train.metric to loss or to the name of a task"
            )
        if self.mixing.needs_epochs and self.train.max_epochs is None:
            raise ValueError(f"mixing of kind {self.mixing.kind} depends on the number of epochs: set train.max_epochs")
        if self.train.parallel == "fsdp":
            raise ValueError(
                "several tasks cannot be combined with train.parallel=fsdp, because the passes of several tasks need "
                "different shards of the model and the processes would wait forever: use train.parallel=ddp"
            )
        return self

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with those that depend on the data copied from the stored run."""
        tasks: dict[str, Any] = {
            name: task.with_stored_choices(stored.tasks[name])
            if name in stored.tasks and type(task) is type(stored.tasks[name])
            else task
            for name, task in self.tasks.items()
        }
        head = SeveralHeadsConfig(heads={name: task.head for name, task in tasks.items()})
        model = self.model.with_stored_choices(stored.model).model_copy(update={"head": head})
        return super().with_stored_choices(stored).model_copy(update={"tasks": tasks, "model": model})


_HEADS: dict[Any, str] = {
    kind: member.run_class.head for member in union_members(MemberTaskConfig) for kind in kinds(member)
}
"""The kind of the head of each kind of task."""


def _name_problem(name: Any) -> str | None:
    """Return the reason why a task cannot have this name, or None."""
    if not isinstance(name, str) or not name or "." in name or "/" in name or name != name.strip():
        return f"the task name {name!r} must be a text without dots, slashes and outer blanks: choose another name"
    return f"the task name {name!r} is reserved: choose another name" if name in _RESERVED else None


def _head(task: Any) -> dict[str, Any] | None:
    """Return the settings of the head of a task that is not yet validated; None if they are invalid."""
    if isinstance(task, MemberTask):
        return task.head.model_dump(exclude_unset=True) | {"kind": task.head.kind}
    if not isinstance(task, dict):
        return None
    head, kind = task.get("head", {}), _HEADS.get(task.get("kind"))
    return {"kind": kind, **head} if isinstance(head, dict) and kind is not None else None
