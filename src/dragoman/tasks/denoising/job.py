"""`DenoisingJob`, the data, model, loss, validation and model folder of a run that restores corrupted text."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.batch import Batch
from dragoman.data.batches.denoising import DenoisingCollator
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.corpora.readers import check_readable
from dragoman.data.noise.noise import Corruption
from dragoman.metrics.score import Score
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.tasks.corpora.held_out_text import read_held_out
from dragoman.tasks.corpora.job import ValidationSets, flops_per_target_token
from dragoman.tasks.corpora.text_job import TextJob
from dragoman.tasks.denoising.config import DenoisingRun
from dragoman.tasks.denoising.validator import METRICS, DenoisingValidator
from dragoman.tasks.labelled.card import training_facts, write_training_section
from dragoman.tasks.start.settings import StartedRun, load_start
from dragoman.tasks.start.vocabulary import add_tags, load_vocabulary
from dragoman.tasks.translation.job import check_compilable
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.validation import Validation

VALIDATION_SEED = 0
_SAMPLE = 500
"""Number of blocks whose lengths after corruption are measured."""


class DenoisingJob(TextJob):
    """The job of a run that restores corrupted text."""

    run: DenoisingRun
    has_batch_shapes: ClassVar[bool] = True

    def __init__(self, run: DenoisingRun) -> None:
        check_readable(*run.data.corpora)
        run, tokenizers = load_vocabulary(run)
        self._held_out = read_held_out(run.data.valid_sets, run.data.cleaning)
        started = load_start(run)
        self._continues = started.continues
        if started.tokenizers is not None and "text" not in run.model_fields_set:
            started = _without_prefix(started, started.tokenizers)
        run, tokenizers = started.run, tokenizers or started.tokenizers
        tags = run.data.noise.tags(run.data.block)
        if tokenizers is not None:
            _check_vocabulary(tokenizers)
            tags = tuple(tag for tag in tags if tag not in tokenizers.source.marks)
        run, self._tokenizers = add_tags(run, tokenizers, tags)
        super().__init__(run, started.start)
        check_compilable(run.model, run.train)

    def check_initial_values(self) -> None:
        """Check the first lines of the files of word vectors."""
        if not self._continues:
            self.run.model.check_word_vectors()

    def initialise(self, model: Seq2Seq) -> Mapping[str, float]:  # type: ignore[override]
        """Copy the parameters of `train.start`, or word vectors, into a model.

        Returns, for each side, the fraction of vocabulary entries that have a word vector.
        """
        fractions = {} if self._continues else self.run.model.fill_word_vectors(model, self.tokenizers)
        super().initialise(model)
        return self.start.loaded.meta.embeddings if self.start is not None and self._continues else fractions

    @cached_property
    def _corrupted_lengths(self) -> NDArray[np.int32]:
        """Numbers of tokens of the source and the target of some blocks, without special symbols, (N, 2)."""
        rows = np.unique(np.linspace(0, self.examples - 1, min(_SAMPLE, self.examples)).astype(np.int64))
        (texts,) = self.prepared.dataset.take(rows)
        batch = DenoisingCollator(self._corruption(self.run.train.seed))(texts, rows.tolist())
        masks = batch.source_mask, batch.target_mask
        return torch.stack([mask.sum(1) for mask in masks], 1).numpy().astype(np.int32) - self.special

    def target_token_count(self) -> int:
        """Return the mean number of target tokens of an epoch."""
        return round(self.examples * (float(self._corrupted_lengths[:, 1].mean()) + self.special))

    def flops_per_target_token(self) -> float:
        """Return the FLOPs per target token of texts that are corrupted like the training text."""
        model, passes = self.run.model, int(self.run.train.objective.passes)
        return flops_per_target_token(
            model, self.tokenizers.sizes, self._corrupted_lengths, self.special, passes=passes
        )

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[Batch]:
        """Return batches that a thread reads and corrupts. The noise depends on seed, epoch and row."""
        collate = DenoisingCollator(self._corruption(self.run.train.seed), epoch)
        return Loader(self.prepared.dataset, plan, start, None, epoch, pin, collate, self.batch_shapes)

    def _corruption(self, seed: int) -> Corruption:
        return Corruption(self.run.data.noise, self.tokenizer, seed)

    def validator(self, model: Seq2Seq, device: torch.device) -> ValidationSets:
        """Return a validator that computes the loss and the perplexity of the targets of each validation set."""
        corruption, block = self._corruption(VALIDATION_SEED), self.run.data.block
        validators = {
            text.name: DenoisingValidator(text.documents, self.tokenizer, corruption, block, model)
            for text in self._held_out
        }
        return ValidationSets(validators, METRICS)

    def card_scores(self, validation: Validation) -> list[tuple[str, Score]]:
        """Return the perplexity."""
        return [("perplexity of the targets", score) for score in validation.scores if score.better is None]

    def measure(self, folder: Path, validation: Validation) -> None:
        """Add the noise and the settings of the training to the model card."""
        facts = [
            self.text_facts(),
            ("Noise", self.run.data.noise.describe()),
            *training_facts(self.run, self.start, self.contents["valid"]),
        ]
        write_training_section(folder, facts)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata. Both sides have the same language."""
        meta = super().meta(step, validation, averaged_steps)
        return meta.model_copy(update={"source_language": meta.target_language, "embeddings": dict(self.notes)})


def _without_prefix(started: StartedRun, tokenizers: Tokenizers) -> StartedRun:
    """Return a run without the prefix of the model from which it starts, since the prefix describes another task."""
    text = started.run.text.model_copy(update={"source_prefix": ""})
    run = started.run.model_copy(update={"text": text})
    return replace(started, run=run, tokenizers=tokenizers.with_source_prefix(""))


def _check_vocabulary(tokenizers: Tokenizers) -> None:
    """Raise ConfigError if a model has two vocabularies or reads vectors."""
    if not tokenizers.has_single_tokenizer:
        raise ConfigError(
            "task.kind=denoising reads and produces the same language with one vocabulary, but the model of "
            "train.start has two: add a text section to learn a new vocabulary, and choose the parts that fit with "
            "train.start_parts"
        )
