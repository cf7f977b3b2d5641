"""`MaskedLanguageModelRun`, the settings of a run that trains a masked language model."""

from collections.abc import Mapping
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
_MASKING = {"replaced": 1.0, "random": 0.0}
"""Masking for a generator: all predicted tokens are hidden (Clark et al. 2020, section 2)."""


class MaskedDataConfig(TextDataConfig):
    """Corpora, their batching, and masking."""

    block: int = Field(
        _BLOCK,
        ge=8,
        description="Maximum length of a row in tokens, with special symbols. Longer documents are divided into "
        "several blocks, which do not share context.",
    )
    masking: MaskingConfig = Field(MaskingConfig(), description="Masking of tokens, which differs in every epoch.")
    pack: bool = Field(
        False,
        description="Fill each row with several documents in random order, up to data.block tokens. Documents do not "
        "attend to each other. false: one document or block per row, in batches of similar length.",
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

    metric: Literal["loss", "accuracy", "detection_f1"] = Field(
        "loss",
        description="Validation metric that determines the best checkpoint. detection_f1: only with replaced_tokens.",
    )
    objective: LanguageModelObjectiveConfig = Field(
        TextCrossEntropyConfig(), description="Training objective, computed at the masked tokens."
    )
    next_sentence: float = Field(
        0.0,
        ge=0,
        description="Weight of next-sentence prediction (Devlin et al. 2019, section 3.1): each block is divided "
        "into two texts, of which the second is replaced by text of another document in half of the cases, and the "
        "model predicts whether it was. 0: blocks are not divided.",
    )
    replaced_tokens: float = Field(
        0.0,
        ge=0,
        description="λ, weight of replaced-token detection (ELECTRA; Clark et al. 2020, section 2; paper: 50). A small "
        "generator predicts the masked tokens, and the model detects for each token whether the generator has replaced "
        "it. The masked tokens are then all replaced by <mask> by default. 0: the model itself predicts the masked "
        "tokens, without a generator.",
    )

    @model_validator(mode="after")
    def _check_replaced_tokens(self) -> Self:
        if self.replaced_tokens and self.next_sentence:
            raise ValueError("train.next_sentence and train.replaced_tokens cannot be combined: set one of them to 0")
        if self.metric == "detection_f1" and not self.replaced_tokens:
            raise ValueError(
                "train.metric=detection_f1 needs replaced tokens to detect: set train.replaced_tokens=50, or choose "
                "another metric"
            )
        return self


class MaskedLanguageModelRun(HeadRun):
    """A run that trains a masked language model: the top level with `task: {kind: masked_language_model}`."""

    head: ClassVar[str] = "masked_language_model"

    task: MaskedLanguageModelTask = Field(description="Task to learn.")
    data: MaskedDataConfig = Field(description="Corpora, cleaning, masking, batches.")
    train: MaskedLanguageModelLoopConfig = Field(MaskedLanguageModelLoopConfig(), description="Training loop.")

    @classmethod
    def head_kind(cls, settings: Mapping[str, Any]) -> str:
        """Return the head that predicts tokens, or the one that detects replaced tokens."""
        return "replaced_token_detection" if _weight(settings, "replaced_tokens") else cls.head

    @model_validator(mode="before")
    @classmethod
    def _add_implied_parts(cls, values: Any) -> Any:
        """Add the classifier of next sentences, or the generator and its masking, if the weights are positive."""
        if not isinstance(values, dict):
            return values
        data, model = values.get("data"), values.get("model", {})
        if _weight(values, "next_sentence") and isinstance(model, dict) and isinstance(model.get("head", {}), dict):
            model = {**model, "head": {"next_sentence": True, **model.get("head", {})}}
        if _weight(values, "replaced_tokens"):
            if isinstance(model, dict) and model.get("generator") is None and _may_detect(model.get("head")):
                model = {**model, "generator": {}}
            if isinstance(data, dict) and isinstance(data.get("masking", {}), dict):
                data = {**data, "masking": {**_MASKING, **data.get("masking", {})}}
        return {**values, "model": model, **({} if data is None else {"data": data})}

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
        settings = super().with_stored_choices(stored)
        return settings.model_copy(update={"model": self.model.with_stored_choices(stored.model)})


def _weight(settings: Mapping[str, Any], name: str) -> float:
    """Return a weight of the section `train`, which may be missing or not yet validated."""
    train = settings.get("train")
    value = train.get(name) if isinstance(train, Mapping) else getattr(train, name, 0.0)
    return value if isinstance(value, int | float) else 0.0


def _may_detect(head: Any) -> bool:
    """Return whether a section `model.head` does not select a head of another kind."""
    return not isinstance(head, dict) or head.get("kind") in (None, "replaced_token_detection")
