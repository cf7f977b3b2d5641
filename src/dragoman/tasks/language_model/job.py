"""`LanguageModelJob`, the data, model, loss, validation and model folder of a language-model run."""

from typing import Any, ClassVar

import torch

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import TextBatch, collate_text
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.corpora.readers import check_readable, read_references
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.metrics.registry import METRICS as ALL_METRICS
from dragoman.metrics.registry import metrics_with
from dragoman.metrics.score import Score
from dragoman.tasks.corpora.held_out_text import read_held_out
from dragoman.tasks.corpora.job import ValidationSets
from dragoman.tasks.corpora.text_job import TextJob
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.language_model.validator import METRICS, RecordValidator, TextValidator
from dragoman.tasks.start.settings import load_start
from dragoman.tasks.start.vocabulary import load_vocabulary
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.validation import Validation

_TRIAL = (4, 1)
"""Lengths in tokens of the blocks in a trial batch."""
_TOKEN = 4


class LanguageModelJob(TextJob):
    """The job of a language-model run, or of an auxiliary task that trains the decoder of a translation model.

    For an auxiliary task, `use_tokenizers` must be called before `prepare`.
    """

    special = 0
    has_batch_shapes: ClassVar[bool] = True
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

    @property
    def corpus_size(self) -> int:
        """The size of the corpora, which determines an automatic preset: the number of tokens."""
        return self.token_count

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[TextBatch]:
        """Return batches that a thread reads and pads."""
        return Loader(self.prepared.dataset, plan, start, None, epoch, pin, collate_text, self.batch_shapes)

    def trial(self, model: Any) -> TextBatch:
        """Return a batch of two blocks."""
        return collate_text([[_TOKEN] * (tokens + 1) for tokens in _TRIAL], range(len(_TRIAL)))

    def validator(self, model: Any, device: torch.device) -> ValidationSets:
        """Return a validator that computes the loss and the perplexities of each validation set, and `train.metric`."""
        run, block = self.run, self.run.data.block
        metrics = [ALL_METRICS[key] for key in metrics_with(run.train.metric)]
        if not metrics:
            texts = {text.name: TextValidator(text, self.tokenizer, block, model) for text in self._held_out}
            return ValidationSets(texts, METRICS)
        language_model = LanguageModel(model, self.tokenizer, None, block, run.search.model_dump(mode="json"))
        records = {
            text.name: RecordValidator(text, read_references(corpus.as_records()), language_model, block, metrics)
            for text, corpus in zip(self._held_out, self.valid_sets, strict=True)
        }
        return ValidationSets(records, (*METRICS, *metrics))

    def card_scores(self, validation: Validation) -> list[tuple[str, Score]]:
        """Return the metrics of generated texts, and the perplexities."""
        keys = metrics_with(self.run.train.metric)
        perplexities = [("perplexity", score) for score in validation.scores if score.better is None]
        return [*((validation[key].name, validation[key]) for key in keys), *perplexities]
