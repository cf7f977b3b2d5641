"""`NgramRun`, the settings of a run that estimates an n-gram language model."""

from typing import Literal

from pydantic import Field, model_validator

from dragoman.decode.sampling import GenerationConfig
from dragoman.models.kinds.ngram import NgramConfig
from dragoman.statistical.ngrams.kneser_ney import ModifiedKneserNeyConfig
from dragoman.statistical.ngrams.smoothing import SmoothingConfig
from dragoman.tasks.corpora.config import TextCorporaConfig
from dragoman.tasks.estimation import EstimatedRun
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.union import SubwordConfig
from dragoman.text.vocabularies.word import WordConfig
from dragoman.training.task import Task


class NgramDataConfig(TextCorporaConfig):
    """Corpora. No n-gram extends beyond a document, so `documents: line` counts sentences."""

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
    search: GenerationConfig = Field(GenerationConfig(), description="Default generation settings of the model.")
