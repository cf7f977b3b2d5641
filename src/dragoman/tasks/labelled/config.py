"""The settings of runs that train a model to predict labels: classification, regression, tagging, answers, parsing."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.data.batches.plan import BatchConfig
from dragoman.data.labelled.corpus import (
    LabelledCorpora,
    QuestionCorpora,
    TaggedCorpora,
    TreebankCorpusConfig,
    Treebanks,
)
from dragoman.tasks.corpora.config import UnknownLimitConfig
from dragoman.tasks.corpora.held_out_setting import HeldOutSetting
from dragoman.tasks.head_run import HeadRun
from dragoman.tasks.labelled.objective import ClassObjectiveConfig, TreeObjectiveConfig
from dragoman.training.config import VALIDATE_EVERY, LoopConfig
from dragoman.training.optimisers.schedule import ConstantConfig, LinearConfig
from dragoman.training.task import Task

ClassificationMetric = Literal["accuracy", "macro_f1", "weighted_f1", "matthews", "loss"]
RegressionMetric = Literal["pearson", "spearman", "loss"]
TaggingMetric = Literal["auto", "accuracy", "conlleval_f1", "strict_f1", "loss"]
AnsweringMetric = Literal["f1", "exact_match", "loss"]
ParsingMetric = Literal["bracket_f1", "complete_match", "loss"]
"""The metrics that can select the best checkpoint of a task."""

_BODY_PEAK = 0.04
_MIN_INTERVAL = 50
"""Minimum number of updates between validations of a run that only patience ends."""


class LabelledDataConfig(HeldOutSetting, UnknownLimitConfig):
    """Base class of `data` sections with labelled examples. Subclasses have the fields `train` and `valid`."""

    batch: BatchConfig = Field(BatchConfig(), description="Batching of training examples.")
    length: int | None = Field(
        None,
        ge=8,
        description="Maximum number of tokens of an input, or of each text of a pair that is encoded separately. "
        "Longer texts are cut at their end, which is reported. Longer sentences and contexts are divided into "
        "overlapping inputs. null: the model's number of positions, but at most 384 for questions, 512 for tagged "
        "sentences and 4096 otherwise.",
    )
    language: str | None = Field(None, description="Language code for the model card.")
    licence: str | None = Field(None, description="Licence of the data, for the model card.")

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the automatic choices for batches, lengths and sets copied from a stored run."""
        batch = self.batch.with_stored_choices(stored.batch)
        settings = self.model_copy(update={"batch": batch, "length": self.length or stored.length})
        return settings.with_stored_sizes(stored)

    @property
    def valid_sets(self) -> tuple[Any, ...]:
        """The validation sets that are named."""
        value = getattr(self, "valid", None)
        return value if isinstance(value, tuple) else () if value is None else (value,)

    def names(self, field: Literal["train", "valid"]) -> str:
        """Return the names of the corpora of a field, for messages."""
        value = getattr(self, field)
        if value is None:
            return f"examples held out from {self.names('train')}"
        return ", ".join(map(str, value if isinstance(value, tuple) else (value,)))


class LabelledRun(HeadRun):
    """Base class of the runs that train a model on labelled examples."""

    data: LabelledDataConfig = Field(description="Examples and batches.")

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with those that depend on the data copied from the stored run."""
        settings = super().with_stored_choices(stored)
        train = self.train
        if train.metric == "auto":
            train = train.model_copy(update={"metric": stored.train.metric})
        return settings.model_copy(update={"model": self.model.with_stored_choices(stored.model), "train": train})


class LabelledLoopConfig(LoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    def resolve(self, width: int) -> Self:
        """Return the settings with automatic values set. A pre-trained encoder gets a lower learning rate than a new
        one.

        The peak falls with the width d as in published settings: 3e-4 at d = 128 and 5e-5 at d = 768 (Turc et al. 2019;
        Devlin et al. 2019, appendix A.3).
        """
        settings = self
        if self.start is not None and self.schedule is None:
            peak = _BODY_PEAK / width
            schedule = LinearConfig(peak=peak, warmup=0.1) if self.limited else ConstantConfig(peak=peak, warmup=100)
            settings = self.model_copy(update={"schedule": schedule})
        return super(LabelledLoopConfig, settings).resolve(width)


class ClassificationTask(Task):
    """Classification of texts, or of pairs of texts. YAML: `task: {kind: classification}`."""

    kind: Literal["classification"] = "classification"


class LabelledTextsConfig(LabelledDataConfig):
    """Texts, or pairs of texts, with labels."""

    train: LabelledCorpora = Field(description="Training examples: one corpus, or a list of corpora.")
    valid: LabelledCorpora | None = Field(
        None,
        description="Held-out examples for validation, which determine early stopping and checkpoint selection; null: "
        "examples that are held out from `train`.",
    )


class ClassificationLoopConfig(LabelledLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: ClassificationMetric = Field(
        "accuracy", description="Validation metric that determines the best checkpoint."
    )
    objective: ClassObjectiveConfig = Field(ClassObjectiveConfig(), description="Training objective.")


class ClassificationRun(LabelledRun):
    """A run that trains a classifier: the top level of a recipe with `task: {kind: classification}`."""

    head: ClassVar[str] = "classification"

    task: ClassificationTask = Field(description="Task to learn.")
    data: LabelledTextsConfig = Field(description="Examples and batches.")
    train: ClassificationLoopConfig = Field(ClassificationLoopConfig(), description="Training loop.")


class RegressionTask(Task):
    """Prediction of a number for each text or pair of texts. YAML: `task: {kind: regression}`."""

    kind: Literal["regression"] = "regression"


class RegressionLoopConfig(LabelledLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: RegressionMetric = Field("pearson", description="Validation metric that determines the best checkpoint.")


class RegressionRun(LabelledRun):
    """A run that trains a regression model: the top level of a recipe with `task: {kind: regression}`.

    The loss is the squared error.
    """

    head: ClassVar[str] = "regression"

    task: RegressionTask = Field(description="Task to learn.")
    data: LabelledTextsConfig = Field(description="Examples and batches.")
    train: RegressionLoopConfig = Field(RegressionLoopConfig(), description="Training loop.")


class TaggingTask(Task):
    """Prediction of a tag for each word of a sentence. YAML: `task: {kind: tagging}`."""

    kind: Literal["tagging"] = "tagging"


class TaggedDataConfig(LabelledDataConfig):
    """Sentences with one tag for each word."""

    train: TaggedCorpora = Field(description="Training sentences: one corpus, or a list of corpora.")
    valid: TaggedCorpora | None = Field(
        None,
        description="Held-out sentences for validation, which determine early stopping and checkpoint selection; null: "
        "sentences that are held out from `train`.",
    )


class TaggingLoopConfig(LabelledLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: TaggingMetric = Field(
        "auto",
        description="Validation metric that determines the best checkpoint. auto: conlleval_f1 if the tags mark spans, "
        "such as B-NP, otherwise accuracy.",
    )
    tune_outside: bool = Field(
        True,
        description="At each validation, lower the score of O by the amount with the best F1 on the validation set, so "
        "that more spans are found where they are rare; the bias of the stored head contains the amount. Only if "
        "`metric` is F1 of spans, and the validation set has at least 50 spans. The probabilities change accordingly. "
        "F1 on the validation set is then that of the best of 11 amounts, which is slightly too high.",
    )
    objective: ClassObjectiveConfig = Field(ClassObjectiveConfig(), description="Training objective.")


class TaggingRun(LabelledRun):
    """A run that trains a tagger: the top level of a recipe with `task: {kind: tagging}`."""

    head: ClassVar[str] = "tagging"

    task: TaggingTask = Field(description="Task to learn.")
    data: TaggedDataConfig = Field(description="Sentences and batches.")
    train: TaggingLoopConfig = Field(TaggingLoopConfig(), description="Training loop.")


class AnsweringTask(Task):
    """Extractive question answering: finding the answer in a text. YAML: `task: {kind: question_answering}`."""

    kind: Literal["question_answering"] = "question_answering"


class QuestionsConfig(LabelledDataConfig):
    """Questions about texts that contain the answers."""

    train: QuestionCorpora = Field(description="Training questions: one corpus, or a list of corpora.")
    valid: QuestionCorpora | None = Field(
        None,
        description="Held-out questions for validation, which determine early stopping and checkpoint selection; null: "
        "questions that are held out from `train`, with all questions about the same context.",
    )


class AnsweringLoopConfig(LabelledLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: AnsweringMetric = Field("f1", description="Validation metric that determines the best checkpoint.")


class AnsweringRun(LabelledRun):
    """A run that trains a model to find answers: the top level of a recipe with `task: {kind: question_answering}`."""

    head: ClassVar[str] = "span"

    task: AnsweringTask = Field(description="Task to learn.")
    data: QuestionsConfig = Field(description="Questions and batches.")
    train: AnsweringLoopConfig = Field(AnsweringLoopConfig(), description="Training loop.")


class ParsingTask(Task):
    """Prediction of the constituency tree of each sentence. YAML: `task: {kind: parsing}`."""

    kind: Literal["parsing"] = "parsing"


class TreebanksConfig(LabelledDataConfig):
    """Sentences with their trees."""

    train: Treebanks = Field(description="Training trees: one treebank, or a list of treebanks.")
    valid: Treebanks | None = Field(
        None,
        description="Held-out trees for validation, which determine early stopping and checkpoint selection; null: "
        "trees that are held out from `train`.",
    )
    length: int | None = Field(
        None,
        ge=8,
        description="Maximum number of tokens of a sentence. A longer one is an error, because its tree depends on all "
        "words. null: the model's number of positions.",
    )

    @property
    def corpora(self) -> tuple[TreebankCorpusConfig, ...]:
        """The training treebanks."""
        return self.train if isinstance(self.train, tuple) else (self.train,)

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if any(each.weight != 1 for each in self.valid_sets):
            raise ValueError("data.valid is always read once and as a whole: leave out its weight")
        return self


class ParsingLoopConfig(LabelledLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: ParsingMetric = Field("bracket_f1", description="Validation metric that determines the best checkpoint.")
    objective: TreeObjectiveConfig = Field(TreeObjectiveConfig(), description="Training objective.")


class ParsingRun(LabelledRun):
    """A run that trains a parser: the top level of a recipe with `task: {kind: parsing}`.

    The kind of the head is tree_decoder, parsing as translation, or chart.
    """

    head: ClassVar[str] = "tree_decoder"

    task: ParsingTask = Field(description="Task to learn.")
    data: TreebanksConfig = Field(description="Treebanks and batches.")
    train: ParsingLoopConfig = Field(ParsingLoopConfig(), description="Training loop.")

    @classmethod
    def head_kinds(cls, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the kinds of heads that parse."""
        return "tree_decoder", "chart"

    @model_validator(mode="after")
    def _check_objective(self) -> Self:
        check_smoothing(self.model.head.kind, self.train.objective, "train.objective")
        return self


def check_smoothing(head: str, objective: TreeObjectiveConfig, key: str) -> None:
    """Raise ValueError if label smoothing is set for a chart. head: the kind of the head. key: that of `objective`."""
    if head == "chart" and objective != TreeObjectiveConfig():
        raise ValueError(
            f"{key}.label_smoothing does not apply to a head of kind chart, which is trained with a margin: remove it"
        )


def validation_interval(updates: int, limited: bool) -> int:
    """Return the default number of updates between validations.

    It is one epoch of `updates` updates, but at most `VALIDATE_EVERY`. limited: whether the length of the run is
    limited. If not, patience ends the run, which needs enough updates to observe an improvement.
    """
    return min(VALIDATE_EVERY, updates if limited else max(updates, _MIN_INTERVAL))
