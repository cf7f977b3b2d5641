"""`LanguageModelJob`, the data, model, loss, validation and model folder of a language-model run."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.folder import read_config
from dragoman.data.batches.batch import TextBatch, collate_text
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.corpora.readers import check_readable
from dragoman.data.held_out.check import Finding, TextSet, check_texts
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.models.parts import count_parameters
from dragoman.tasks.corpus_job import CorpusJob, ValidationSets, check_block
from dragoman.tasks.estimation import EstimatedRun
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.language_model.validator import METRICS, TextValidator, read_held_out
from dragoman.tasks.start import load_start, stored_text
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.training.objectives.objective import LossContext, Objective
from dragoman.training.task import RunConfig
from dragoman.training.validation import Measure, Validation

R = TypeVar("R", bound=RunConfig | EstimatedRun)
_TRIAL = (4, 1)
"""Lengths in tokens of the excerpts in a trial batch."""
_TOKEN = 4


class LanguageModelJob(CorpusJob):
    """The job of a language-model run, or of an auxiliary task that trains the decoder of a translation model.

    For an auxiliary task, `use_tokenizers` must be called before `prepare`.
    """

    special = 0
    run: LanguageModelRun

    def __init__(self, run: LanguageModelRun) -> None:
        check_readable(*run.data.corpora)
        run, tokenizers = load_vocabulary(run)
        self._held_out = read_held_out(run.data.valid_sets, run.data.cleaning)
        started = load_start(run)
        self._tokenizers = tokenizers or started.tokenizers
        super().__init__(started.run, started.start)

    def use_tokenizers(self, tokenizers: Tokenizers) -> None:
        """Use the target vocabulary of `tokenizers` instead of learning a vocabulary from the text.

        Raises ConfigError if the settings specify another vocabulary.
        """
        if self._tokenizers is not None:
            raise ConfigError("an auxiliary task uses the translation model's vocabulary: remove data.vocabulary_of")
        self._tokenizers = tokenizers

    def check_held_out(self) -> Iterator[Finding]:
        """Compare the held-out documents with the training corpora."""
        return check_texts(self.run.data.corpora, [TextSet(each.name, each.documents) for each in self._held_out])

    def prepare(self) -> None:
        """Prepare the corpora as token shards, and choose the preset by the number of tokens."""
        data = self.run.data
        text = self._tokenizers or self.run.text
        self.prepared = prepare_texts(
            data.corpora,
            data.cleaning,
            text,
            self.run.out.parent / "prepared",
            data.block,
            temperature=data.temperature,
            sample=data.vocabulary_sample,
            language=data.language,
        )
        self.check_unknown()
        self.resolve_settings(None, int(self.lengths.sum(dtype=np.int64)))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.prepared.tokenizers.target

    def build(self) -> nn.Module:
        """Build the model. Raises ConfigError if `data.block` exceeds the model's number of positions."""
        model, block = self.run.model.build(self.tokenizer.size), self.run.data.block
        check_block(block, model.limit)
        return model

    def outline(self, model: nn.Module) -> str:
        """Return one line with the preset and the numbers of parameters, vocabulary entries and tokens."""
        tokens = int(self.lengths.sum(dtype=np.int64))
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{self.tokenizer.size:,} · {tokens:,} tokens in {self.examples:,} excerpts"
        )

    @property
    def validation_sides(self) -> list[dict[str, tuple[Tokenizer, list[str]]]]:
        """The tokenizer and the documents of each validation set."""
        return [{"text": (self.tokenizer, each.documents)} for each in self._held_out]

    @property
    def validation_texts(self) -> list[list[str]]:
        """The documents of each validation set."""
        return [held_out.documents for held_out in self._held_out]

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the share of padding."""
        return f"padding is {plan.padding_waste[-1]:.1%}"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[TextBatch]:
        """Return batches that a thread reads and pads."""
        return Loader(self.prepared.dataset, plan, start, None, epoch, pin, collate_text)

    def objective(self, device: torch.device) -> Objective:
        """Build `train.objective`."""
        dataset = self.prepared.dataset
        return self.run.train.objective.build(LossContext(self.tokenizer, dataset.target_counts, device))

    def trial(self, model: Any) -> TextBatch:
        """Return a batch of two excerpts."""
        return collate_text([[_TOKEN] * (tokens + 1) for tokens in _TRIAL], range(len(_TRIAL)))

    def validator(self, model: Callable[..., Any], device: torch.device) -> ValidationSets:
        """Return a validator that computes the loss and the perplexities of each validation set."""
        block = self.run.data.block
        validators = {text.name: TextValidator(text, self.tokenizer, block, model) for text in self._held_out}
        return ValidationSets(validators, METRICS)

    def card_measures(self, validation: Validation) -> list[tuple[str, Measure]]:
        """Return the perplexities."""
        return [("perplexity", measure) for measure in validation.measures if measure.better is None]


def load_vocabulary(run: R) -> tuple[R, Tokenizers | None]:
    """Read the vocabulary of `data.vocabulary_of`, if it is set, and complete the `text` section from it.

    Raises ConfigError if the run's `text` section contradicts the folder's, ModelError if it is not a model folder.
    """
    settings: Any = run
    folder = settings.data.vocabulary_of
    if folder is None:
        return run, None
    text = stored_text(read_config(folder), folder).one_sided()
    section = type(settings.text)
    if settings.text != section() and settings.text.with_stored_choices(text) != text:
        raise ConfigError(f"data.vocabulary_of uses the vocabulary of {folder}: remove the text section")
    target = Tokenizers.load(folder).target
    if section is not TextConfig:
        text = section.model_validate(text.model_dump())
    return settings.model_copy(update={"text": text}), Tokenizers(target, target)
