"""`LanguageModelRun`, the settings of a run that trains a language model."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings.variants import Variants
from dragoman.data.batches.plan import BatchConfig
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.corpora.corpus import TextCorpora
from dragoman.decode.sampling import GenerationConfig
from dragoman.metrics.registry import ValidationMetricName, metrics_with
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.tasks.corpora.config import TextCorporaConfig
from dragoman.text.tokenizers import TextConfig
from dragoman.training.config import LoopConfig
from dragoman.training.objectives.cross_entropy import CrossEntropyConfig
from dragoman.training.objectives.objective import ObjectiveConfig
from dragoman.training.objectives.r_drop import RDropConfig
from dragoman.training.task import RunConfig, Task

BLOCK = 256


class TextDataConfig(TextCorporaConfig):
    """Corpora and their batching."""

    valid: TextCorpora | None = Field(
        None,
        description="Held-out text for validation, which determines early stopping and checkpoint selection: one "
        "corpus, or a list of corpora over which the loss per token is averaged; null: documents that are held out "
        "from `train`.",
    )
    cleaning: TextCleaningConfig = Field(
        TextCleaningConfig(),
        description="Cleaning rules for documents. The texts of validation sets are repaired in the same way.",
    )
    batch: BatchConfig = Field(BatchConfig(), description="Batching of document blocks.")
    block: int = Field(
        BLOCK,
        ge=1,
        description="Maximum length of a block in tokens. Longer documents are divided into several blocks, which "
        "do not share context.",
    )
    temperature: float | None = Field(
        None,
        gt=0,
        description="Alternative to weights: corpora share an epoch in proportion to n^(1/temperature), where n is the "
        "number of tokens of a corpus. The epoch is as long as all corpora together.",
    )


_Smoothing = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="ε, fraction of the target probability that is distributed over the whole vocabulary; it raises "
        "perplexity.",
    ),
]


class TextCrossEntropyConfig(CrossEntropyConfig):
    """Cross-entropy of the next token against q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    label_smoothing: _Smoothing = 0.0


class TextRDropConfig(RDropConfig):
    """R-Drop, as for translation but by default without label smoothing (Liang et al. 2021, equations 2 to 4)."""

    label_smoothing: _Smoothing = 0.0


TEXT_OBJECTIVES = Variants("loss", ObjectiveConfig)
"""The registry of losses of language-model runs: `TEXT_OBJECTIVES.register` adds an `ObjectiveConfig`."""
LanguageModelObjectiveConfig = Annotated[
    TextCrossEntropyConfig | TextRDropConfig,
    TEXT_OBJECTIVES,
]
"""The union of the objectives of language-model runs."""
TEXT_OBJECTIVES.extend(LanguageModelObjectiveConfig)


class LanguageModelLoopConfig(LoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: ValidationMetricName = Field(
        "loss",
        description="Metric for selecting the best checkpoint on `valid`: the loss or, if the validation sets have a "
        "`template`, a metric of the targets that the model generates, such as rougeL of summaries or accuracy of "
        "labels. Related metrics are reported as well.",
    )
    objective: LanguageModelObjectiveConfig = Field(TextCrossEntropyConfig(), description="Training objective.")


class LanguageModelTask(Task):
    """Language modelling: predicting the next token of a text. YAML: `task: {kind: language_model}`."""

    kind: Literal["language_model"] = "language_model"


class LanguageModelRun(RunConfig):
    """A run that trains a language model: the top level of a recipe with `task: {kind: language_model}`."""

    task: LanguageModelTask = Field(description="Task to learn.")
    data: TextDataConfig = Field(description="Corpora, cleaning, batches.")
    text: TextConfig = Field(TextConfig(), description="Subwords and the vocabulary.")
    model: LanguageModelConfig = Field(LanguageModelConfig(), description="Model architecture.")
    train: LanguageModelLoopConfig = Field(LanguageModelLoopConfig(), description="Training loop.")
    search: GenerationConfig = Field(GenerationConfig(), description="Generation settings of the trained model.")

    @model_validator(mode="after")
    def _check_metric(self) -> Self:
        plain = [str(corpus) for corpus in self.data.valid_sets if corpus.template is None]
        if metrics_with(self.train.metric) and not self.data.valid_sets:
            raise ValueError(f"train.metric={self.train.metric} needs a validation set with a template: set data.valid")
        if metrics_with(self.train.metric) and plain:
            raise ValueError(
                f"train.metric={self.train.metric} compares generated texts with the targets of records, but the "
                f"validation set {plain[0]} has no template: set data.valid.template, or train.metric=loss"
            )
        return self

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with an automatic preset and batch size copied from the stored run."""
        settings = super().with_stored_choices(stored)
        return settings.model_copy(update={"model": self.model.with_stored_choices(stored.model)})
