"""`DenoisingJob`, the data, model, loss, validation and model folder of a run that restores corrupted text."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.batch import Batch
from dragoman.data.batches.denoising import DenoisingCollator
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.corpora.readers import check_readable
from dragoman.data.held_out.check import Finding, TextSet, check_texts
from dragoman.data.noise.noise import Corruption
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.models.parts import count_parameters
from dragoman.models.seq2seq import Seq2Seq
from dragoman.tasks.corpus_job import CorpusJob, ValidationSets, check_block, flops_per_target_token
from dragoman.tasks.denoising.config import DenoisingRun
from dragoman.tasks.denoising.validator import METRICS, DenoisingValidator
from dragoman.tasks.labelled.card import training_facts, write_training_section
from dragoman.tasks.language_model.job import load_vocabulary
from dragoman.tasks.language_model.validator import read_held_out
from dragoman.tasks.start import load_start
from dragoman.tasks.translation.job import check_compilable
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.objectives.objective import LossContext, Objective
from dragoman.training.validation import Measure, Validation

VALIDATION_SEED = 0
_SAMPLE = 500
"""Number of excerpts whose lengths after corruption are measured."""


class DenoisingJob(CorpusJob):
    """The job of a run that restores corrupted text."""

    run: DenoisingRun

    def __init__(self, run: DenoisingRun) -> None:
        check_readable(*run.data.corpora)
        run, tokenizers = load_vocabulary(run)
        self._held_out = read_held_out(run.data.valid_sets, run.data.cleaning)
        started = load_start(run)
        self._continues = started.continues
        run, tokenizers = started.run, tokenizers or started.tokenizers
        tags = run.data.noise.tags(run.data.block)
        if tokenizers is None:
            tags = tuple(dict.fromkeys([*run.text.tags, *tags]))
            run = run.model_copy(update={"text": run.text.model_copy(update={"tags": tags})})
        else:
            _check_vocabulary(tokenizers)
            tokenizers = tokenizers.with_tags(tuple(dict.fromkeys([*tokenizers.tags, *tags])))
        self._tokenizers: Tokenizers | None = tokenizers
        super().__init__(run, started.start)
        check_compilable(run.model, run.train)

    def check_initial_values(self) -> None:
        """Check the first lines of the files of word vectors."""
        model = self.run.model
        if not self._continues:
            has_width = model.preset != "auto" or "width" in model.model_fields_set
            model.embeddings.check(model.width if has_width else None)

    def check_held_out(self) -> Iterator[Finding]:
        """Compare the held-out documents with the training corpora."""
        return check_texts(self.run.data.corpora, [TextSet(each.name, each.documents) for each in self._held_out])

    def prepare(self) -> None:
        """Prepare the corpora as token shards, and choose the preset by the number of excerpts."""
        data = self.run.data
        self.prepared = prepare_texts(
            data.corpora,
            data.cleaning,
            self._tokenizers or self.run.text,
            self.run.out.parent / "prepared",
            data.block - self.special,
            temperature=data.temperature,
            sample=data.vocabulary_sample,
            language=data.language,
        )
        self.check_unknown()
        self.resolve_settings(None, self.examples)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.prepared.tokenizers.source

    def build(self) -> Seq2Seq:
        """Build the model. Raises ConfigError if `data.block` exceeds the model's number of positions."""
        model, block = self.run.model.build_for(self.tokenizers.sizes), self.run.data.block
        for limit in model.limits:
            check_block(block, limit)
        return model

    def initialise(self, model: Seq2Seq) -> Mapping[str, float]:  # type: ignore[override]
        """Copy the parameters of `train.start`, or word vectors, into a model.

        Returns, for each side, the share of vocabulary entries that have a word vector.
        """
        shares: dict[str, float] = {}
        if not self._continues:
            embeddings = self.run.model.embeddings
            embeddings.check(self.run.model.width)
            tables = model.encoder.embedding.tokens, model.decoder.embedding.tokens
            shares = embeddings.fill(*tables, self.tokenizers)
        super().initialise(model)
        return shares

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

    @cached_property
    def _corrupted_lengths(self) -> NDArray[np.int32]:
        """Numbers of tokens of the source and the target of some excerpts, without special symbols, (N, 2)."""
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

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the share of padding of the texts before they are corrupted."""
        return f"padding is {plan.padding_waste[-1]:.1%}"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[Batch]:
        """Return batches that a thread reads and corrupts. The noise depends on seed, epoch and row."""
        collate = DenoisingCollator(self._corruption(self.run.train.seed), epoch)
        return Loader(self.prepared.dataset, plan, start, None, epoch, pin, collate)

    def _corruption(self, seed: int) -> Corruption:
        return Corruption(self.run.data.noise, self.tokenizer, seed)

    def objective(self, device: torch.device) -> Objective:
        """Build `train.objective`."""
        dataset = self.prepared.dataset
        return self.run.train.objective.build(LossContext(self.tokenizer, dataset.target_counts, device))

    def validator(self, model: Seq2Seq, device: torch.device) -> ValidationSets:
        """Return a validator that computes the loss and the perplexity of the targets of each validation set."""
        corruption, block = self._corruption(VALIDATION_SEED), self.run.data.block
        validators = {
            text.name: DenoisingValidator(text.documents, self.tokenizer, corruption, block, model)
            for text in self._held_out
        }
        return ValidationSets(validators, METRICS)

    def card_measures(self, validation: Validation) -> list[tuple[str, Measure]]:
        """Return the perplexity."""
        return [("perplexity of the targets", measure) for measure in validation.measures if measure.better is None]

    def measure(self, folder: Path) -> None:
        """Add the noise and the settings of the training to the model card."""
        data = self.run.data
        tokens = int(self.lengths.sum(dtype=np.int64))
        facts = [
            ("Training text", f"{tokens:,} tokens in {self.examples:,} excerpts of at most {data.block} tokens"),
            ("Noise", data.noise.describe()),
            *training_facts(self.run, self.start, self.contents["valid"]),
        ]
        write_training_section(folder, facts)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata. Both sides have the same language."""
        meta = super().meta(step, validation, averaged_steps)
        return meta.model_copy(update={"source_language": meta.target_language, "embeddings": dict(self.notes)})


def _check_vocabulary(tokenizers: Tokenizers) -> None:
    """Raise ConfigError if a model has two vocabularies or reads vectors."""
    if not tokenizers.has_single_tokenizer:
        raise ConfigError(
            "task.kind=denoising reads and produces the same language with one vocabulary, but the model of "
            "train.start has two: add a text section to learn a new vocabulary, and choose the parts that fit with "
            "train.start_parts"
        )
