"""`CorporaConfig` and `TextCorporaConfig`, the base classes of the `data` sections of tasks that learn from corpora."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.data.batches.plan import BatchConfig
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.corpora.corpus import TextCorpora
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.tasks.corpora.held_out_setting import HeldOutSetting
from dragoman.text.unknown_tokens import MAX_UNKNOWN


class UnknownLimitConfig(Config):
    """Base class of `data` sections of tasks that learn from text."""

    max_unknown: float | None = Field(
        MAX_UNKNOWN,
        gt=0,
        le=1,
        description="Maximum fraction of unknown tokens in the training data and in the validation data, per corpus "
        "and side. Above it, training is refused. null: no limit. Vocabularies of kind bpe and unigram have no unknown "
        "tokens.",
    )


class CorporaConfig(UnknownLimitConfig):
    """Base class of `data` sections.

    Subclasses have the fields `train` and `valid`, each with one corpus or a list of corpora, `batch`, `cleaning`, and
    optionally `temperature`.
    """

    if TYPE_CHECKING:
        batch: BatchConfig
        cleaning: Any

    @property
    def corpora(self) -> tuple[Any, ...]:
        """The training corpora."""
        return self._as_tuple("train")

    @property
    def valid_sets(self) -> tuple[Any, ...]:
        """The validation sets."""
        return self._as_tuple("valid")

    @property
    def corpus_names(self) -> str:
        """Names of the training corpora, for messages."""
        return ", ".join(map(str, self.corpora))

    @property
    def valid_names(self) -> str:
        """Names of the validation sets, for messages."""
        return ", ".join(map(str, self.valid_sets))

    def card(self) -> Mapping[str, Any]:
        """Return languages and licence as fields of `Meta`."""
        raise NotImplementedError

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the automatic choices for batches copied from a stored run."""
        return self.model_copy(update={"batch": self.batch.with_stored_choices(stored.batch)})

    def _as_tuple(self, field: str) -> tuple[Any, ...]:
        value = getattr(self, field)
        return value if isinstance(value, tuple) else () if value is None else (value,)

    @model_validator(mode="after")
    def _check_weights(self) -> "CorporaConfig":
        if any(corpus.weight != 1 for corpus in self.valid_sets):
            raise ValueError("data.valid is always read once and as a whole: leave out its weight")
        weighted = [str(corpus) for corpus in self.corpora if corpus.weight != 1]
        if getattr(self, "temperature", None) is not None and weighted:
            raise ValueError(f"data.temperature replaces weights: leave out the weight of {weighted[0]}")
        return self


class TextCorporaConfig(HeldOutSetting, CorporaConfig):
    """Base class of the `data` sections of language models of all kinds, which learn from plain text."""

    train: TextCorpora = Field(description="Training text: one corpus, or a list of corpora.")
    valid: TextCorpora | None = Field(
        None,
        description="Held-out text, whose perplexity is reported: one corpus, or a list of corpora; null: documents "
        "that are held out from `train`.",
    )
    cleaning: TextCleaningConfig = Field(TextCleaningConfig(), description="Cleaning rules for documents.")
    vocabulary_sample: int = Field(
        SAMPLE,
        ge=1,
        description="Maximum number of bytes of training text for learning the vocabulary. If the corpus is larger, a "
        "fixed random sample is used.",
    )
    vocabulary_of: Path | None = Field(
        None,
        description="Model folder whose target vocabulary is used, for shallow fusion with that model; null: a "
        "vocabulary is learned from the training text.",
    )
    language: str | None = Field(None, description="Language code for the model card.")
    licence: str | None = Field(None, description="Licence of the corpus, for the model card.")

    def card(self) -> Mapping[str, Any]:
        """Return language and licence as fields of `Meta`."""
        return {"target_language": self.language, "licence": self.licence}

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the automatic choices for batches and sets copied from a stored run."""
        return super().with_stored_choices(stored).with_stored_sizes(stored)
