"""`TextToTextRun` and `SummarizationRun`, the settings of runs whose sources and targets are texts of any kind."""

from typing import ClassVar, Literal, Self

from pydantic import Field

from dragoman.data.batches.plan import BatchConfig
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.held_out.sets import HeldOutUnit
from dragoman.metrics.registry import ValidationMetricName
from dragoman.tasks.translation.config import DataConfig, TranslationLoopConfig, TranslationRun
from dragoman.training.task import Task


class TextToTextCleaningConfig(CleaningConfig):
    """Cleaning rules for pairs of texts. Rules that compare the sides, which are no translations, are disabled."""

    max_tokens: int | None = Field(
        default=1024, ge=1, description="Drop pairs with more subword tokens than this on either side; null: no limit."
    )
    max_words: int | None = Field(
        default=None, ge=1, description="Drop pairs with more words than this on either side; null: no limit."
    )
    max_characters: int | None = Field(
        default=None, ge=1, description="Drop pairs with more characters than this on either side; null: no limit."
    )
    max_ratio: float | None = Field(
        default=None,
        gt=1.0,
        description="Drop pairs whose length ratio differs by more than this factor from the usual ratio of the "
        "corpus; null: no limit.",
    )
    wrong_script: bool = Field(
        default=False,
        description="Drop pairs with a side that is mostly written in a script other than the scripts of that side.",
    )
    copied_words: int | None = Field(
        default=None,
        ge=1,
        description="Drop pairs with identical sides if they contain at least this many words with letters. null: "
        "keep all pairs.",
    )


class TextToTextDataConfig(DataConfig):
    """Corpora and their batching."""

    held_out_unit: ClassVar[HeldOutUnit] = "labels"

    cleaning: TextToTextCleaningConfig = Field(
        TextToTextCleaningConfig(), description="Cleaning rules for training pairs."
    )
    batch: BatchConfig = Field(BatchConfig(tokens=4096), description="Batching of training pairs.")


class SummarizationDataConfig(TextToTextDataConfig):
    """Corpora and their batching."""

    held_out_unit: ClassVar[HeldOutUnit] = "texts"


class TextToTextLoopConfig(TranslationLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: ValidationMetricName = Field(
        "accuracy",
        description="Metric for selecting the best checkpoint on `valid`: accuracy of generated labels, exact_match "
        "or answer_f1 of answers, rougeL of summaries, or any other. Related metrics are reported as well.",
    )


class TextToTextTask(Task):
    """Any task as the generation of text from text (Raffel et al. 2020, section 2.4), such as classification by
    writing the label. YAML: `task: {kind: text_to_text}`.
    """

    kind: Literal["text_to_text"] = "text_to_text"


class TextToTextRun(TranslationRun):
    """A run that learns to write targets of any kind: the top level with `task: {kind: text_to_text}`."""

    task: TextToTextTask = Field(description="Task to learn.")  # type: ignore[assignment]
    data: TextToTextDataConfig = Field(description="Corpora, cleaning, batches.")
    train: TextToTextLoopConfig = Field(TextToTextLoopConfig(), description="Training loop.")

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the settings that depend on the data copied from the stored run."""
        settings, search = super().with_stored_choices(stored), self.search
        if search.maximum_length is None:
            search = search.model_copy(update={"maximum_length": stored.search.maximum_length})
        return settings.model_copy(update={"search": search})


class SummarizationLoopConfig(TextToTextLoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: ValidationMetricName = Field(
        "rougeL",
        description="Metric for selecting the best checkpoint on `valid`. ROUGE-1, ROUGE-2 and ROUGE-L are reported "
        "together.",
    )


class SummarizationTask(Task):
    """Summarization: writing a short text with the content of a long one. YAML: `task: {kind: summarization}`."""

    kind: Literal["summarization"] = "summarization"


class SummarizationRun(TextToTextRun):
    """A run that trains a summarizer: the top level of a recipe with `task: {kind: summarization}`."""

    task: SummarizationTask = Field(description="Task to learn.")  # type: ignore[assignment]
    data: SummarizationDataConfig = Field(description="Corpora, cleaning, batches.")
    train: SummarizationLoopConfig = Field(SummarizationLoopConfig(), description="Training loop.")
