"""`StatisticalRun`, the settings of a run that estimates a statistical translation model."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.decode.search import SearchConfig
from dragoman.metrics.bleu_tokenizer import AUTO, BleuTokenizerName
from dragoman.models.kinds.statistical import StatisticalConfig
from dragoman.statistical.alignment.methods.hmm import HMMConfig
from dragoman.statistical.alignment.methods.union import AlignmentMethod
from dragoman.statistical.alignment.symmetrization import Symmetrization
from dragoman.tasks.corpora.pair_sets import PairSetsConfig
from dragoman.tasks.estimation import EstimatedRun
from dragoman.text.tokenizers import TextConfig
from dragoman.training.task import Task

_TEXT = {"subword": {"kind": "word", "size": 10_000_000, "min_frequency": 1}, "shared": False}
_SEARCH = {"beam": 200, "length_penalty": {"kind": "none"}}


class StatisticalTranslationTask(Task):
    """Statistical translation from one language to another. YAML: `task: {kind: statistical_translation}`."""

    kind: Literal["statistical_translation"] = "statistical_translation"


class StatisticalDataConfig(PairSetsConfig):
    """Corpora of sentence pairs."""

    valid: CorpusConfig | None = Field(
        None,
        description="Held-out pairs, on which the weights are tuned and the model is scored; null: pairs that are held "
        "out from `train`.",
    )
    cleaning: CleaningConfig = Field(CleaningConfig(), description="Cleaning rules for training pairs.")
    source_language: str | None = Field(None, description="Code of the source language, for the model card.")
    target_language: str | None = Field(
        None, description="Code of the target language, for the model card and for the tokeniser of BLEU."
    )
    licence: str | None = Field(None, description="Licence of the corpus, for the model card.")

    @property
    def corpora(self) -> tuple[CorpusConfig, ...]:
        """The training corpora."""
        return self.train if isinstance(self.train, tuple) else (self.train,)

    @property
    def valid_sets(self) -> tuple[CorpusConfig, ...]:
        """The validation set, if it is named."""
        return () if self.valid is None else (self.valid,)

    @model_validator(mode="after")
    def _check_corpora(self) -> "StatisticalDataConfig":
        for corpus in (*self.corpora, *self.valid_sets, *self.test_sets):
            if corpus.all_tags:
                raise ValueError(f"statistical translation does not support tags, but {corpus} has some")
            if corpus.weight != 1:
                raise ValueError(f"statistical translation does not support weights, but {corpus} has one")
        return self

    def card(self) -> Mapping[str, Any]:
        """Return languages and licence as fields of `Meta`."""
        return {name: getattr(self, name) for name in ("source_language", "target_language", "licence")}


class WordAlignmentConfig(Config):
    """Word alignment of the training pairs, from which phrases are extracted. Case is ignored."""

    method: AlignmentMethod = Field(HMMConfig(), description="Alignment method, trained in both directions.")
    symmetrization: Symmetrization = Field(
        "grow-diag-final-and",
        description="Combination of both directions. Source of the default: Koehn et al. 2005.",
    )


class TuningConfig(Config):
    """Minimum error rate training (Och 2003): weights that maximise BLEU of n-best lists of the validation set.

    In each round, the validation set is translated with the current weights, and exact line searches maximise BLEU over
    all translations found so far. The weights with the best translations of the validation set are kept. Tuning ends
    when two rounds in succession find no better weights.
    """

    rounds: int = Field(5, ge=1, description="Maximum number of rounds.")
    nbest: int = Field(50, ge=2, description="Number of translations per sentence and round.")
    beam: int = Field(30, ge=1, description="`search.beam` in tuning.")
    restarts: int = Field(0, ge=0, description="Number of random starting points of the line searches in each round.")
    seed: int = Field(1, ge=0, description="Seed of the starting points.")
    sentences: int | None = Field(
        400, ge=1, description="Number of sentences, from the start of the validation set; null: all."
    )


class StatisticalRun(EstimatedRun):
    """A run that estimates a statistical translation model: the top level of a recipe."""

    task: StatisticalTranslationTask = Field(StatisticalTranslationTask(), description="Task to learn.")
    data: StatisticalDataConfig = Field(description="Corpora and cleaning.")
    text: TextConfig = Field(
        TextConfig.model_validate(_TEXT),
        description="Words and vocabularies. By default, the vocabularies contain all words of the corpora.",
    )
    model: StatisticalConfig = Field(StatisticalConfig(), description="Translation method and limits of the search.")
    alignment: WordAlignmentConfig = Field(WordAlignmentConfig(), description="Word alignment.")
    tuning: TuningConfig | None = Field(
        TuningConfig(), description="Tuning of the weights on the validation set; null: use the initial weights."
    )
    search: SearchConfig = Field(
        SearchConfig.model_validate(_SEARCH),
        description="Default search settings of the model. `beam` is the number of hypotheses for each number of "
        "translated source words.",
    )
    bleu_tokenizer: BleuTokenizerName = Field(
        AUTO, description="sacreBLEU's tokeniser for BLEU; auto: by the target language of `data`."
    )
    threads: int | None = Field(None, ge=1, description="Number of threads; null: one per core.")

    @model_validator(mode="after")
    def _check_text(self) -> "StatisticalRun":
        if self.text.vectors is not None or self.text.tags or self.text.source_prefix:
            raise ValueError(
                "statistical translation translates text without tags and prefix: remove text.vectors, text.tags and "
                "text.source_prefix"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _fill_sections(cls, values: Any) -> Any:
        """Complete partial `text` and `search` sections with the defaults of this task."""
        if not isinstance(values, dict):
            return values
        defaults: dict[str, dict[str, Any]] = {"text": _TEXT, "search": _SEARCH}
        given = {name: values[name] for name in defaults if isinstance(values.get(name), dict)}
        return {**values, **{name: {**defaults[name], **section} for name, section in given.items()}}
