"""`MaskedLanguageModelRun`, the settings of a run that trains a masked language model."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.data.batches.masking import MaskingConfig
from dragoman.tasks.head_run import HeadRun
from dragoman.tasks.language_model.config import (
    LanguageModelObjectiveConfig,
    TextCrossEntropyConfig,
    TextDataConfig,
)
from dragoman.training.config import LoopConfig
from dragoman.training.task import Task

_BLOCK = 128


class MaskedDataConfig(TextDataConfig):
    """Corpora, their batching, and masking."""

    block: int = Field(
        _BLOCK,
        ge=8,
        description="Maximum length of a row in tokens, with special symbols. Longer documents are divided into "
        "several excerpts, which do not share context.",
    )
    masking: MaskingConfig = Field(MaskingConfig(), description="Masking of tokens, which differs in every epoch.")
    pack: bool = Field(
        False,
        description="Fill each row with several documents in random order, up to data.block tokens. Documents do not "
        "attend to each other. false: one document or excerpt per row, in batches of similar length.",
    )
    vocabulary_of: Path | None = Field(
        None,
        description="Model folder whose target vocabulary is used. null: a vocabulary is learned from the training "
        "text, or that of train.start is used.",
    )


class MaskedLanguageModelTask(Task):
    """Restoring masked tokens of a text (Devlin et al. 2019). YAML: `task: {kind: masked_language_model}`."""

    kind: Literal["masked_language_model"] = "masked_language_model"


class MaskedLanguageModelLoopConfig(LoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: Literal["loss", "accuracy"] = Field(
        "loss", description="Validation metric that determines the best checkpoint."
    )
    objective: LanguageModelObjectiveConfig = Field(
        TextCrossEntropyConfig(), description="Training objective, computed at the masked tokens."
    )
    next_sentence: float = Field(
        0.0,
        ge=0,
        description="Weight of next-sentence prediction (Devlin et al. 2019, section 3.1): each excerpt is divided "
        "into two texts, of which the second is replaced by text of another document in half of the cases, and the "
        "model predicts whether it was. 0: excerpts are not divided.",
    )


class MaskedLanguageModelRun(HeadRun):
    """A run that trains a masked language model: the top level with `task: {kind: masked_language_model}`."""

    head: ClassVar[str] = "masked_language_model"

    task: MaskedLanguageModelTask = Field(description="Task to learn.")
    data: MaskedDataConfig = Field(description="Corpora, cleaning, masking, batches.")
    train: MaskedLanguageModelLoopConfig = Field(MaskedLanguageModelLoopConfig(), description="Training loop.")

    @model_validator(mode="before")
    @classmethod
    def _predict_next_sentences(cls, values: Any) -> Any:
        """Add the classifier of next sentences to the head if `train.next_sentence` is positive."""
        train = values.get("train") if isinstance(values, dict) else None
        model = values.get("model", {}) if isinstance(values, dict) else None
        if not isinstance(train, dict) or not train.get("next_sentence") or not isinstance(model, dict):
            return values
        head = model.get("head", {})
        return (
            {**values, "model": {**model, "head": {"next_sentence": True, **head}}}
            if isinstance(head, dict)
            else values
        )

    @model_validator(mode="after")
    def _check_next_sentences(self) -> Self:
        if self.train.next_sentence and not getattr(self.model.head, "next_sentence", False):
            raise ValueError(
                "train.next_sentence needs a head that predicts next sentences: remove model.head.next_sentence=false, "
                "or set train.next_sentence=0"
            )
        return self

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with an automatic preset and batch size copied from the stored run."""
        data = self.data.model_copy(update={"batch": self.data.batch.with_stored_choices(stored.data.batch)})
        return self.model_copy(update={"data": data, "model": self.model.with_stored_choices(stored.model)})
