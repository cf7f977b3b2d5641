"""`TranslationRun`, the settings of a run that trains a translation model."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.data.batches.plan import BatchConfig
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.decode.search import SearchConfig
from dragoman.inference.control.marking import PlaceholdersConfig, TerminologyConfig
from dragoman.metrics.bleu_tokenizer import AUTO, BleuTokenizerName
from dragoman.metrics.registry import ValidationMetricName
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.statistical.alignment.shortlist import ShortlistConfig
from dragoman.statistical.alignment.word_aligner import AlignerConfig
from dragoman.tasks.corpora.config import CorporaConfig
from dragoman.tasks.corpora.pair_sets import PairSetsConfig
from dragoman.tasks.language_model.config import LanguageModelObjectiveConfig, TextCrossEntropyConfig, TextDataConfig
from dragoman.tasks.translation.objectives.scheduled_sampling import ConstantRatioConfig, TeacherRatioConfig
from dragoman.tasks.translation.objectives.union import TranslationObjectiveConfig
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.training.config import AverageConfig, LoopConfig, MovingAverage
from dragoman.training.objectives.cross_entropy import CrossEntropyConfig
from dragoman.training.optimisers.muon import MuonConfig
from dragoman.training.optimisers.union import OptimiserConfig
from dragoman.training.task import RunConfig, Task


class AuxiliaryLanguageModelConfig(Config):
    """Language modelling on target-language text with the decoder of a translation model, without a source.

    Attention over the source then contributes nothing. Source: Domhan & Hieber 2017, "Using target-side
    monolingual data for neural machine translation through multi-task learning". The task uses the translation model's
    target vocabulary.
    """

    kind: Literal["language_model"] = "language_model"
    part: Literal["decoder"] = Field("decoder", description="Part of the translation model that the task trains.")
    weight: float = Field(
        1.0,
        ge=0,
        description="λ, weight of the mean loss per token relative to the main task, which has weight 1.",
    )
    data: TextDataConfig = Field(description="Plain text of the target language.")
    objective: LanguageModelObjectiveConfig = Field(TextCrossEntropyConfig(), description="Training objective.")


class AuxiliaryTasksConfig(Config):
    """Auxiliary tasks of a run.

    The run minimises Σ λ_t L_t, where L_t is the mean loss of task t in an update (deck 001, multi-task). Every update
    has the same number of batches from each task. Epochs, the choice of the best checkpoint and the model folder are
    those of the main task.

    YAML: `auxiliary_tasks: {tasks: {german: {kind: language_model, data: {train: {text: news.de}, valid: …}}}}`.
    """

    tasks: dict[str, AuxiliaryLanguageModelConfig] = Field(min_length=1, description="Auxiliary tasks, by name.")
    temperature: float | None = Field(
        None,
        gt=0,
        description="Alternative to weights: λ_t = (n_t / n)^(1/temperature), where n_t and n are the numbers of "
        "target tokens of the auxiliary task and of the main task.",
    )

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the settings that depend on the data copied from the stored run."""
        tasks = {
            name: task.model_copy(update={"data": task.data.with_stored_choices(stored.tasks[name].data)})
            if name in stored.tasks
            else task
            for name, task in self.tasks.items()
        }
        return self.model_copy(update={"tasks": tasks})

    @model_validator(mode="after")
    def _check_weights(self) -> "AuxiliaryTasksConfig":
        weighted = [name for name, task in self.tasks.items() if "weight" in task.model_fields_set]
        if self.temperature is not None and weighted:
            raise ValueError(f"temperature replaces weights: remove the weight of {weighted[0]}")
        return self


_DROPOUT_EPOCHS = 20.0
_SMALLEST_FALL = 0.25
"""Minimum fraction of its fall that the teacher-forcing ratio should complete within a run."""


class DataConfig(PairSetsConfig, CorporaConfig):
    """Corpora and their batching."""

    cleaning: CleaningConfig = Field(
        CleaningConfig(),
        description="Cleaning rules for training pairs. The texts of validation pairs are repaired in the same way.",
    )
    batch: BatchConfig = Field(BatchConfig(), description="Batching of training pairs.")
    temperature: float | None = Field(
        None,
        gt=0,
        description="Alternative to weights: corpora share an epoch in proportion to n^(1/temperature), where n is the "
        "number of pairs of a corpus. The epoch is as long as all corpora together. 1 keeps their proportions; with "
        "higher values, small corpora are read more often. Arivazhagan et al. 2019: 5.",
    )
    vocabulary_sample: int = Field(
        SAMPLE,
        ge=1,
        description="Maximum number of bytes of training text for learning subwords. If the corpus is larger, a fixed "
        "random sample is used.",
    )
    placeholders: PlaceholdersConfig | None = Field(
        None,
        description="Replacement of spans that occur on both sides of a pair by symbols, in some of the pairs; null: "
        "no placeholders.",
    )
    terminology: TerminologyConfig | None = Field(
        None, description="Marking of glossary terms with their translations, in some of the pairs; null: no marks."
    )
    aligner: AlignerConfig | None = Field(
        None,
        description="Word aligner that is trained on the training pairs at the end of the run and stored in the model "
        "folder. It provides the alignments of `translate --alignments`, the positions of markup in documents and the "
        "word links of the server; {}: an aligner with default settings; null: the decoder's attention provides them.",
    )
    shortlist: ShortlistConfig | None = Field(
        None,
        description="Shortlist of probable target tokens that is trained on the training pairs at the end of the run "
        "and stored in the model folder, for search.shortlist; {}: with default settings; null: no shortlist.",
    )
    source_language: str | None = Field(None, description="Code of the source language, for the model card.")
    target_language: str | None = Field(
        None, description="Code of the target language, for the model card and for the tokeniser of BLEU."
    )
    licence: str | None = Field(None, description="Licence of the corpus, for the model card.")

    def card(self) -> Mapping[str, Any]:
        """Return languages and licence as fields of `Meta`."""
        return {name: getattr(self, name) for name in ("source_language", "target_language", "licence")}

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the automatic choices for batches and held-out pairs copied from a stored run."""
        return super().with_stored_choices(stored).with_stored_sizes(stored)

    @property
    def languages(self) -> tuple[str, ...]:
        """The target languages of the training corpora, in order, without duplicates."""
        languages = [corpus.target_language for corpus in self.corpora if corpus.target_language is not None]
        return tuple(dict.fromkeys(languages))

    @property
    def inline_symbols(self) -> tuple[str, ...]:
        """The symbols that `placeholders` and `terminology` add to the vocabularies."""
        sections = (self.placeholders, self.terminology)
        return tuple(tag for section in sections if section is not None for tag in section.tags)

    @model_validator(mode="after")
    def _check_names(self) -> "DataConfig":
        for section, corpora in (("train", self.corpora), ("valid", self.valid_sets), ("test", self.test_sets)):
            names = Counter(map(str, corpora))
            duplicates = [name for name, count in names.items() if count > 1]
            if duplicates:
                weight = "list it once and set its weight, or " if section == "train" else ""
                raise ValueError(
                    f"two corpora of data.{section} are called {duplicates[0]}: {weight}give them different names"
                )
        return self

    @model_validator(mode="after")
    def _check_languages(self) -> "DataConfig":
        if self.languages:
            for corpus in (*self.corpora, *self.valid_sets, *self.test_sets):
                if corpus.target_language is None:
                    raise ValueError(
                        f"some corpora have a target_language ({', '.join(self.languages)}), but {corpus} has none: "
                        "set it for all corpora of data.train, data.valid and data.test, or for none of them"
                    )
        return self


class TranslationLoopConfig(LoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: ValidationMetricName = Field(
        "bleu",
        description="Metric for selecting the best checkpoint on `valid`. Ties are broken by chrF2, then by BLEU, then "
        "by the loss.",
    )
    bleu_tokenizer: BleuTokenizerName = Field(
        AUTO,
        description="sacreBLEU's tokeniser for BLEU in validation and in rewards. auto: by the target language of the "
        "validation set or of `data`: zh for Chinese, ja-mecab for Japanese, ko-mecab for Korean, char for other "
        "languages without spaces between words, and 13a for all others.",
    )
    average: AverageConfig = Field(AverageConfig(count=0), description="Checkpoint averaging at the end of training.")
    ema: MovingAverage = 0.998
    optimiser: OptimiserConfig = Field(MuonConfig(), description="Optimiser.")
    validation_beam: int = Field(1, ge=1, description="Beam size of the translations that validation scores.")
    teacher: Path | None = Field(
        None,
        description="Model folder of the teacher, which produced the targets of data.train; `dragoman distill` sets "
        "it. The run uses the teacher's vocabularies unless the recipe has a text section, and the model card names "
        "the teacher.",
    )
    objective: TranslationObjectiveConfig = Field(CrossEntropyConfig(), description="Training objective.")
    teacher_forcing: TeacherRatioConfig = Field(
        ConstantRatioConfig(),
        description="Schedule of the probability that an input token is the reference instead of the model's own "
        "previous output.",
    )

    def resolve(self, width: int) -> Self:
        """Return the settings with a dropout rate that rises at first, unless the run starts from a trained model."""
        epochs = _DROPOUT_EPOCHS if self.dropout_epochs is None and self.start is None else self.dropout_epochs
        return super().resolve(width).model_copy(update={"dropout_epochs": epochs or 0.0})

    def unfinished_schedules(self, updates: int) -> Iterator[str]:
        """Yield a message if the teacher-forcing ratio hardly falls within `updates` updates."""
        start, end = self.teacher_forcing.ratio(1, 0.0), self.teacher_forcing.ratio(updates, 1.0)
        floor = getattr(self.teacher_forcing, "floor", end)
        if start - end < _SMALLEST_FALL * (start - floor):
            yield (
                f"train.teacher_forcing of kind {self.teacher_forcing.kind} lowers the ratio only from {start:.2f} to "
                f"{end:.2f} within the run of {updates:,} updates, far from its minimum of {floor:g}. Choose a faster "
                "schedule, or train for longer"
            )

    @model_validator(mode="after")
    def _check_teacher_forcing(self) -> "TranslationLoopConfig":
        if self.teacher_forcing.needs_length and not self.limited:
            raise ValueError(
                "train.teacher_forcing of kind linear without steps depends on the length of the run: set its steps, "
                "or train.max_steps, train.max_epochs or train.max_minutes"
            )
        if self.compile and (self.objective.decodes or self.teacher_forcing != ConstantRatioConfig()):
            raise ValueError(
                "train.compile=true compiles layers that process whole references, but with "
                f"train.objective.kind={self.objective.kind} and this train.teacher_forcing the model reads its own "
                "output token by token: remove train.compile"
            )
        if self.compile and self.objective.records_attention:
            raise ValueError(
                f"train.objective.kind={self.objective.kind} needs attention weights, which compiled layers do not "
                "record: remove train.compile"
            )
        return self


SystemName = Literal["dictionary", "phrase_based"]


class TranslationTask(Task):
    """Translation from one language to another. YAML: `task: {kind: translation}`, the default."""

    kind: Literal["translation"] = "translation"


class TranslationRun(RunConfig):
    """A run that trains a translation model: the top level of a recipe."""

    task: TranslationTask = Field(TranslationTask(), description="Task to learn.")
    data: DataConfig = Field(description="Corpora, cleaning, batches.")
    text: TextConfig = Field(TextConfig(), description="Subwords and vocabularies.")
    model: ModelConfig = Field(ModelConfig(), description="Model architecture.")
    train: TranslationLoopConfig = Field(TranslationLoopConfig(), description="Training loop.")
    search: SearchConfig = Field(SearchConfig(), description="Default search settings of the trained model.")
    systems: Literal["auto"] | tuple[SystemName, ...] = Field(
        "auto",
        description="Statistical models that are estimated on the same pairs before training. The folder translates "
        "with the best system on the validation set, which may be a hybrid of the phrase-based and the neural model. "
        "auto: dictionary and phrase_based for up to 20,000 pairs of one language pair, unless the run starts from a "
        "trained model; []: none.",
    )
    auxiliary_tasks: AuxiliaryTasksConfig | None = Field(
        None, description="Auxiliary tasks that the model learns in the same run."
    )

    def with_all_tags(self, tokenizers: Tokenizers) -> Tokenizers:
        """Return the tokenizers, extended with the tags of this run that they lack."""
        corpus_tags = (tag for corpus in self.data.corpora for tag in corpus.all_tags)
        tags = [*self.text.tags, *corpus_tags, *self.data.inline_symbols]
        new = [tag for tag in dict.fromkeys(tags) if tag not in tokenizers.tags]
        return tokenizers.with_tags([*tokenizers.tags, *new]) if new else tokenizers

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with an automatic preset and batch size copied from the stored run."""
        settings = super().with_stored_choices(stored)
        model, train, auxiliary = self.model.with_stored_choices(stored.model), self.train, self.auxiliary_tasks
        if train.bleu_tokenizer == AUTO:
            train = train.model_copy(update={"bleu_tokenizer": stored.train.bleu_tokenizer})
        if auxiliary is not None and stored.auxiliary_tasks is not None:
            auxiliary = auxiliary.with_stored_choices(stored.auxiliary_tasks)
        return settings.model_copy(update={"model": model, "train": train, "auxiliary_tasks": auxiliary})

    @model_validator(mode="before")
    @classmethod
    def _separate_vocabularies_are_not_tied(cls, values: Any) -> Any:
        """Untie the embeddings if text.shared=false or text.vectors is set, unless model.tie_embeddings is given."""
        if not isinstance(values, dict):
            return values
        text, model = values.get("text"), values.get("model", {})
        separate = isinstance(text, dict) and (text.get("shared") is False or text.get("vectors") is not None)
        if separate and isinstance(model, dict):
            return {**values, "model": {"tie_embeddings": False, **model}}
        return values

    @model_validator(mode="after")
    def _sentences_are_held_out(self) -> "TranslationRun":
        if self.text.vectors is not None and (self.data.holds_out or self.data.cleaning.held_out):
            raise ValueError(
                "feature vectors have no sentences by which pairs could be held out: give a validation set, "
                "data.valid, and leave out held_out"
            )
        return self

    @model_validator(mode="after")
    def _tied_embeddings_share_a_vocabulary(self) -> "TranslationRun":
        if self.model.tie_embeddings and not self.text.shared:
            raise ValueError(
                "model.tie_embeddings requires one vocabulary for both languages: set text.shared=true or "
                "model.tie_embeddings=false"
            )
        return self

    @model_validator(mode="after")
    def _several_tasks_are_not_sharded(self) -> "TranslationRun":
        if self.auxiliary_tasks is not None and self.train.parallel == "fsdp":
            raise ValueError(
                "auxiliary_tasks cannot be combined with train.parallel=fsdp, because the passes of several tasks need "
                "different shards of the model and the processes would wait forever: use train.parallel=ddp"
            )
        return self
