"""`RunConfig`: everything that a training run is made of; the composition of the parts' own configs."""

from collections import Counter
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from dragoman.base.config import Config
from dragoman.data.batches.plan import BatchConfig
from dragoman.data.corpora.corpus import Corpora, CorpusConfig
from dragoman.data.preparation.cleaning import CleaningConfig
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.decode.search import SearchConfig
from dragoman.models.build import ModelConfig
from dragoman.text.tokenizers import TextConfig
from dragoman.train.objectives.objective import ObjectiveConfig
from dragoman.train.objectives.teacher import ConstantRatioConfig, TeacherRatioConfig
from dragoman.train.optimisers.adam import AdamConfig
from dragoman.train.optimisers.union import OptimiserConfig
from dragoman.train.schedule import ScheduleConfig

Metric = Literal["bleu", "loss"]


class DataConfig(Config):
    """The corpora and how they become batches."""

    train: Corpora = Field(description="the sentence pairs to learn from: one corpus, or a list of them")
    valid: Corpora = Field(
        description="held-out pairs: every choice of the run is made on them. One set, or a list of sets, whose means "
        "of BLEU and of loss decide"
    )
    cleaning: CleaningConfig = Field(CleaningConfig(), description="which training pairs are dropped")
    batch: BatchConfig = Field(BatchConfig(), description="how training pairs are grouped")
    temperature: float | None = Field(
        None,
        gt=0,
        description="instead of weights: corpora of n pairs share an epoch as long as all of them in proportion to "
        "n^(1/temperature); 1 leaves them as they are, a higher one reads small corpora more often. Paper: 5",
    )
    vocabulary_sample: int = Field(
        SAMPLE,
        ge=1,
        description="most bytes of training text that subwords are learned from; of more text, a fixed random part",
    )
    source_language: str | None = Field(None, description="code of the source language, for the model card")
    target_language: str | None = Field(None, description="code of the target language, for the model card")
    licence: str | None = Field(None, description="terms of the corpus, for the model card")

    @property
    def corpora(self) -> tuple[CorpusConfig, ...]:
        """The corpora of `train`."""
        return (self.train,) if isinstance(self.train, CorpusConfig) else self.train

    @property
    def valid_sets(self) -> tuple[CorpusConfig, ...]:
        """The sets of `valid`."""
        return (self.valid,) if isinstance(self.valid, CorpusConfig) else self.valid

    @property
    def validation(self) -> str:
        """What messages call `valid`."""
        return ", ".join(map(str, self.valid_sets))

    @property
    def languages(self) -> tuple[str, ...]:
        """The target languages that the corpora of `train` are tagged with, in their order."""
        named = [corpus.target_language for corpus in self.corpora if corpus.target_language is not None]
        return tuple(dict.fromkeys(named))

    @property
    def training(self) -> str:
        """What messages call `train`."""
        return ", ".join(map(str, self.corpora))

    @model_validator(mode="after")
    def _names_differ(self) -> "DataConfig":
        for section, corpora in (("train", self.corpora), ("valid", self.valid_sets)):
            names = Counter(map(str, corpora))
            twice = [name for name, count in names.items() if count > 1]
            if twice:
                advice = "read it once, with a weight, or set their name" if section == "train" else "set their name"
                raise ValueError(f"two corpora of data.{section} are {twice[0]}: {advice}")
        if any(corpus.weight != 1 for corpus in self.valid_sets):
            raise ValueError("data.valid is read as a whole: leave out its weight")
        weighted = [str(corpus) for corpus in self.corpora if corpus.weight != 1]
        if self.temperature is not None and weighted:
            raise ValueError(f"data.temperature stands instead of weights; leave out the weight of {weighted[0]}")
        return self

    @model_validator(mode="after")
    def _all_have_a_language_or_none(self) -> "DataConfig":
        if self.languages:
            for corpus in (*self.corpora, *self.valid_sets):
                if corpus.target_language is None:
                    raise ValueError(
                        f"some corpora have a target_language ({', '.join(self.languages)}), and {corpus} has none: "
                        "set it for all corpora of data.train and data.valid, or for none"
                    )
        return self


class AverageConfig(Config):
    """The mean of several checkpoints' parameters (Vaswani et al. 2017, section 6.1), used if better on `valid`."""

    count: int = Field(5, ge=0, description="checkpoints averaged when training ends (paper: 5 base, 20 big); 0: none")
    of: Literal["last", "best"] = Field("last", description="the newest checkpoints, or those best on `valid`")


_LIMITS = ("max_steps", "max_epochs", "max_minutes")


class LoopConfig(Config):
    """The training loop: limits, rhythm, optimisation. At least one limit or `patience` ends the run."""

    start: Path | None = Field(
        None,
        description="a model folder whose parameters and vocabularies the run starts from; where sections model and "
        "text are left out they are its too; null: random parameters",
    )
    seed: int = Field(1, ge=0, description="decides initial parameters, batch order, dropout and subword sampling")
    max_steps: int | None = Field(None, ge=1, description="stop after this many updates")
    max_epochs: int | None = Field(None, ge=1, description="stop after this many passes over the corpus")
    max_minutes: float | None = Field(
        None, gt=0, description="stop after this time, summed over resumed sittings (minutes)"
    )
    patience: int | None = Field(10, ge=1, description="stop after this many validations without a better one")
    validate_every: int = Field(500, ge=1, description="updates between validations")
    checkpoint_every: int = Field(500, ge=1, description="updates between checkpoints")
    log_every: int = Field(50, ge=1, description="updates between lines of log.jsonl")
    metric: Metric = Field(
        "bleu", description="what 'better' means on `valid`: bleu (higher) or loss (lower); where equal, the other"
    )
    validation_beam: int = Field(1, ge=1, description="beam width of the translations that validation scores")
    average: AverageConfig = Field(AverageConfig(), description="checkpoint averaging at the end")
    ema: float | None = Field(
        None, gt=0, lt=1, description="decay of a moving average of the parameters, validated and kept in their place"
    )
    accumulate: int = Field(
        1, ge=1, description="batches whose gradients are added up for one update, over all processes together"
    )
    parallel: Literal["ddp", "fsdp"] = Field(
        "ddp",
        description="how the processes that torchrun starts hold the model: ddp, each has all of it; fsdp, each has a "
        "share of parameters, gradients and optimiser state. One process has it all",
    )
    clip: float | None = Field(1.0, gt=0, description="largest norm of the gradient of the mean loss; null: any")
    objective: ObjectiveConfig = Field(ObjectiveConfig(), description="the loss")
    teacher_forcing: TeacherRatioConfig = Field(
        ConstantRatioConfig(),
        description="how often an input token is the reference instead of the model's own last output",
    )
    optimiser: OptimiserConfig = Field(AdamConfig(), description="how gradients move the parameters")
    schedule: ScheduleConfig | None = Field(
        None,
        description="the learning rate over time; null: chosen for the model's width, a cosine that ends with the run "
        "where max_steps, max_epochs or max_minutes is set, else inverse_sqrt",
        json_schema_extra={"kind": "inverse_sqrt"},
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="of matrix products; auto: bfloat16 where the hardware multiplies it faster. Sums are float32",
    )
    device: str = Field("auto", description="cpu, cuda, cuda:1 …; auto: a GPU if there is one")
    compile: bool = Field(
        False,
        description="Transformer layers through torch.compile, for GPUs: the first updates then take a minute or more. "
        "Part of what makes runs equal",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads; null: one a core. Part of what makes runs equal"
    )

    @classmethod
    def usual_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """A run with a limit has a schedule that ends with it."""
        return {"schedule": "cosine"} if any(settings.get(limit) is not None for limit in _LIMITS) else {}

    @property
    def limits(self) -> dict[str, float | None]:
        """What the length of the run, and with it most schedules, depends on."""
        return {limit: getattr(self, limit) for limit in _LIMITS}

    @property
    def limited(self) -> bool:
        """Whether the run has a length, so that a schedule can end with it."""
        return any(self.limits.values())

    @model_validator(mode="after")
    def _ends(self) -> "LoopConfig":
        if not self.limited and self.patience is None:
            raise ValueError("nothing ends this run: set max_steps, max_epochs, max_minutes or patience")
        if self.teacher_forcing.needs_length and not self.limited:
            raise ValueError(
                "train.teacher_forcing of kind linear without steps must know how long the run is: set its steps, or "
                "max_steps, max_epochs or max_minutes"
            )
        if self.compile and (self.objective.reward is not None or self.teacher_forcing != ConstantRatioConfig()):
            raise ValueError(
                "train.compile=true compiles layers that read whole references, but with train.objective.reward or "
                "another train.teacher_forcing the model reads its own output, a token at a time: leave it out"
            )
        if self.schedule is not None and self.schedule.needs_length and not self.limited:
            raise ValueError(
                f"a {self.schedule.kind} schedule with warmup={self.schedule.warmup} must know how long the run is: "
                "set max_steps, max_epochs or max_minutes"
            )
        return self


class RunConfig(Config):
    """A training run: the top level of a recipe."""

    data: DataConfig = Field(description="corpora, cleaning, batches")
    text: TextConfig = Field(TextConfig(), description="subwords and vocabularies")
    model: ModelConfig = Field(ModelConfig(), description="the network")
    train: LoopConfig = Field(LoopConfig(), description="the training loop")
    search: SearchConfig = Field(SearchConfig(), description="how the trained model translates unless told otherwise")
    out: Path = Field(description="the run's folder; when training ends it is a model folder")

    @model_validator(mode="before")
    @classmethod
    def _separate_vocabularies_are_not_tied(cls, values: Any) -> Any:
        """With text.shared=false, or vectors, source and target embeddings are not tied unless somebody asks for it."""
        if not isinstance(values, dict):
            return values
        text, model = values.get("text"), values.get("model", {})
        apart = isinstance(text, dict) and (text.get("shared") is False or text.get("vectors") is not None)
        if apart and isinstance(model, dict):
            return {**values, "model": {"tie_embeddings": False, **model}}
        return values

    @model_validator(mode="after")
    def _tied_embeddings_share_a_vocabulary(self) -> "RunConfig":
        if self.model.tie_embeddings and not self.text.shared:
            raise ValueError(
                "model.tie_embeddings needs one vocabulary for both languages: set text.shared=true, or "
                "model.tie_embeddings=false"
            )
        return self
