"""`MaskedLanguageModelJob`, the data, model, loss, validation and model folder of a run with masked tokens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.masked import SPECIAL, MaskedBatch, MaskedCollator, content, plan_packed
from dragoman.data.batches.masking import MASK, Masker
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.batches.sentence_pairs import PairMaker
from dragoman.data.corpora.readers import check_readable
from dragoman.metrics.score import Score
from dragoman.models.families.family import resolve_scheme
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.corpora.held_out_text import read_held_out
from dragoman.tasks.corpora.job import activation_bytes
from dragoman.tasks.corpora.text_job import TextJob
from dragoman.tasks.labelled.card import training_facts, write_training_section
from dragoman.tasks.masked_language_model.config import MaskedLanguageModelRun
from dragoman.tasks.masked_language_model.objective import NextSentenceObjective
from dragoman.tasks.masked_language_model.replaced_tokens import Detector, ReplacedTokenObjective
from dragoman.tasks.masked_language_model.validator import MaskedTextValidator, MaskedValidationSets
from dragoman.tasks.start.encoder import fill_encoder, load_encoder
from dragoman.tasks.start.settings import StartedRun
from dragoman.tasks.start.vocabulary import add_tags, load_vocabulary
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.training.objectives.objective import Objective
from dragoman.training.validation import Validation

VALIDATION_SEED = 0
_PRODUCTS = 3
"""Matrix products per weight matrix in training: one forward, two backward."""


class MaskedLanguageModelJob(TextJob):
    """The job of a run that trains a masked language model."""

    special = SPECIAL
    run: MaskedLanguageModelRun

    def __init__(self, run: MaskedLanguageModelRun, started: StartedRun | None = None) -> None:
        """started: the run with the encoder of `train.start`, if it is already loaded."""
        check_readable(*run.data.corpora)
        tokenizers = None
        if started is None:
            run, tokenizers = load_vocabulary(run)
        self._held_out = read_held_out(run.data.valid_sets, run.data.cleaning)
        started = started or load_encoder(run)
        run, self._tokenizers = add_tags(started.run, tokenizers or started.tokenizers, [MASK])
        super().__init__(run, started.start)

    def prepare(self) -> None:
        """Prepare the corpora, and check that the encoder can keep the documents of a packed row apart."""
        super().prepare()
        if self.run.data.pack:
            _check_packing(self.run.model)

    @property
    def block_special(self) -> int:
        """Number of special symbols of a block. A pair has an EOS after each text."""
        return SPECIAL + bool(self.run.train.next_sentence)

    def initialise(self, model: nn.Module) -> Mapping[str, float]:
        """Copy the parts of `train.start`. A head for another task is replaced by a new one."""
        if self.start is not None:
            fill_encoder(self.start, model, self.run, self.tokenizers)
        return {}

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Estimate the memory of a forward pass. A packed row has up to `data.block` tokens."""
        longest = self.run.data.block if self.run.data.pack else int(self.lengths.max()) + SPECIAL
        models = [model] if model.generator is None else [model, model.generator]
        return sum(activation_bytes(each, tokens, longest, free) for each in models)

    def target_token_count(self) -> int:
        """Return the mean number of masked tokens of an epoch."""
        return round(self.run.data.masking.rate * self.token_count)

    def flops_per_target_token(self) -> float:
        """Return the FLOPs of an update divided by its number of masked tokens, at which tokens are predicted."""
        config, masked = self.run.model, self.run.data.masking.rate
        per_token = self.model_flops(config) / masked
        if config.generator is None:
            transformed = config.width if getattr(config.head, "transform", False) else 0
            return per_token + _PRODUCTS * 2 * config.width * (self.tokenizer.size + transformed)
        encoder, width = config.generator.scale(config.encoder, config.width)
        changes = {"encoder": encoder, "width": width, "head": config.generator.head, "generator": None}
        own = self.model_flops(config.model_copy(update=changes)) / masked
        size = self.tokenizer.size
        projections = _PRODUCTS * width + (_PRODUCTS + 1) * size  # one more to draw tokens
        return per_token + own + 2 * config.width * (projections + _PRODUCTS * width / masked)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan the batches of an epoch: blocks of similar length, or packed rows of blocks in random order."""
        data = self.run.data
        if not data.pack:
            return super().plan(epoch)
        parts = self.prepared.parts
        seed, special = self.run.train.seed, self.block_special
        return plan_packed(
            self.lengths, self.batch_tokens, data.block, seed=seed, epoch=epoch, parts=parts, special=special
        )

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[MaskedBatch]:
        """Return batches that a thread reads and masks. The masks depend on seed, epoch and row."""
        data = self.run.data
        length = data.block if data.pack else None
        collate = MaskedCollator(self._masker(self.run.train.seed), epoch, length, self._pairs())
        return Loader(self.prepared.dataset, plan, start, None, epoch, pin, collate)

    def _pairs(self) -> PairMaker | None:
        """Return the divider of blocks for next-sentence prediction, or None if it is disabled."""
        if not self.run.train.next_sentence:
            return None
        dataset = self.prepared.dataset
        documents = np.concatenate([part.lines + (number << 40) for number, part in enumerate(dataset.parts)])

        def read(row: int) -> NDArray[np.int64]:
            return content(dataset.take(np.array([row]))[0].ids.astype(np.int64))

        return PairMaker(self.tokenizer, read, documents, self.run.train.seed)

    def _masker(self, seed: int) -> Masker:
        return Masker(self.run.data.masking, self.tokenizer, seed)

    def objective(self, device: torch.device) -> Objective:
        """Build `train.objective`."""
        train, tokens = self.run.train, super().objective(device)
        if train.replaced_tokens:
            length = float(self.lengths.mean())
            predicted = self.run.data.masking.rate * length / (length + self.block_special)
            return ReplacedTokenObjective(tokens, train.replaced_tokens, predicted, self._vocabulary)
        if not train.next_sentence:
            return tokens
        per_pair = self.run.data.masking.rate * float(self.lengths.mean())
        return NextSentenceObjective(tokens, train.next_sentence, per_pair)

    def validator(self, model: EncoderOnly, device: torch.device) -> MaskedValidationSets:
        """Return a validator that computes loss, perplexity and accuracy of masked tokens on each validation set."""
        masker, block, train = self._masker(VALIDATION_SEED), self.run.data.block, self.run.train
        detector = Detector(self._vocabulary) if train.replaced_tokens else None
        options: dict[str, Any] = {
            "model": model,
            "pairs": bool(train.next_sentence),
            "detector": detector,
            "weight": train.replaced_tokens,
        }
        return MaskedValidationSets(
            {text.name: MaskedTextValidator(text, self.tokenizer, masker, block, **options) for text in self._held_out}
        )

    @property
    def _vocabulary(self) -> range:
        """The ids of the vocabulary without special symbols and tags."""
        return range(len(SPECIAL_SYMBOLS), self.tokenizer.size - len(self.tokenizer.tags))

    def card_scores(self, validation: Validation) -> list[tuple[str, Score]]:
        """Return perplexity and accuracy."""
        return [(score.name, score) for score in validation.scores if score.key != "loss"]

    def measure(self, folder: Path, validation: Validation) -> None:
        """Add the settings of the training to the model card."""
        facts = [
            self.text_facts(),
            ("Tokens that are predicted", f"{self.run.data.masking.rate:.0%}"),
            *training_facts(self.run, self.start, self.contents["valid"]),
        ]
        write_training_section(folder, facts)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata. The language is that of the source."""
        meta = super().meta(step, validation, averaged_steps)
        return meta.model_copy(update={"source_language": meta.target_language, "target_language": None})


def _check_packing(model: EncoderOnlyConfig) -> None:
    """Raise ConfigError if the encoder cannot keep the documents of a row apart."""
    encoder = model.encoder
    if not encoder.packs_documents:
        raise ConfigError(
            f"data.pack needs attention that compares all pairs of tokens, but model.encoder is of kind "
            f"{encoder.kind}: set data.pack=false, or use a Transformer with attention of kind soft"
        )
    scheme = resolve_scheme(model.positions, encoder, "encoder")
    if scheme.needs_length:
        raise ConfigError(
            f"data.pack: positions of kind {scheme.kind} depend on the length of the text: set data.pack=false, or "  # type: ignore[attr-defined]
            "choose another kind of positions"
        )
