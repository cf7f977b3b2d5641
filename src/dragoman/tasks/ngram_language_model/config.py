"""`NgramRun`, the settings of a run that estimates an n-gram language model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.corpora.corpus import TextCorpora
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.decode.sampling import SamplingConfig
from dragoman.models.ngram import NgramConfig
from dragoman.ngrams.kneser_ney import ModifiedKneserNeyConfig
from dragoman.ngrams.smoothing import SmoothingConfig
from dragoman.tasks.corpora import CorporaConfig
from dragoman.tasks.estimation import EstimatedRun
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.union import SubwordConfig
from dragoman.text.vocabularies.word import WordConfig
from dragoman.training.task import Task


class NgramDataConfig(CorporaConfig):
    """Corpora. No n-gram extends beyond a document, so `documents: line` counts sentences."""

    train: TextCorpora = Field(description="Training text: one corpus, or a list of corpora.")
    valid: TextCorpora = Field(
        description="Held-out text, whose perplexity is reported: one corpus, or a list of corpora."
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

    @model_validator(mode="after")
    def _check_counted_once(self) -> "NgramDataConfig":
        if weighted := [str(corpus) for corpus in self.corpora if corpus.weight != 1]:
            raise ValueError(f"every corpus is counted once: leave out the weight of {weighted[0]}")
        return self


class NgramTextConfig(TextConfig):
    """Tokenisation. The default is words; `kind: whitespace` is for text that is already tokenised."""

    subword: SubwordConfig = Field(
        default=WordConfig(), description="Kind of vocabulary: words, subwords or characters."
    )


class NgramTask(Task):
    """n-gram language modelling: probabilities of tokens from counts. YAML: `task: {kind: ngram_language_model}`."""

    kind: Literal["ngram_language_model"] = "ngram_language_model"


class NgramRun(EstimatedRun):
    """A run that estimates an n-gram language model: the top level of a recipe with this `task`."""

    task: NgramTask = Field(description="Task to learn.")
    data: NgramDataConfig = Field(description="Corpora and cleaning.")
    text: NgramTextConfig = Field(NgramTextConfig(), description="Words or subwords, and the vocabulary.")
    model: NgramConfig = Field(NgramConfig(), description="Order of the model.")
    smoothing: SmoothingConfig = Field(
        ModifiedKneserNeyConfig(), description="Smoothing: probabilities of n-grams that are rare or do not occur."
    )
    search: SamplingConfig = Field(SamplingConfig(), description="Default generation settings of the model.")
