"""`TranslationJob`: what a run that learns to translate reads, builds, minimises, judges and writes."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import LoadedModel, write_model_folder
from dragoman.checkpoint.meta import Meta, Score
from dragoman.control.marking import PairMarking
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan, plan_epoch
from dragoman.data.batches.resampling import Resampler
from dragoman.data.corpora.readers import check_readable
from dragoman.data.preparation.pipeline import Prepared
from dragoman.data.preparation.prepare import prepare
from dragoman.models.parts import count_parameters
from dragoman.models.seq2seq import Seq2Seq
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.cost import flops_per_target_token, trained_bytes
from dragoman.tasks.translation.distillation_teacher import load_teacher
from dragoman.tasks.translation.lengths import check_lengths
from dragoman.tasks.translation.objectives.scheduled_sampling import ScheduledSampling
from dragoman.tasks.translation.start import copy_parameters, load_start
from dragoman.tasks.translation.validation import ValidationSets, check_tags, digest, read_held_out
from dragoman.training.objectives.objective import LossContext, Objective
from dragoman.training.task import Content, Job
from dragoman.training.validation import Validation
from dragoman.translation.translator import Translator

_LONGER_BY_DROPOUT = 1.3
"""BPE-dropout at a rate of 0.1 splits sentences into so many times the planned pieces."""

_TRIAL = ((3, 4), (1, 1))
"""Tokens of source and target of the pairs of a trial."""
_TOKEN = 4
"""An ordinary vocabulary entry, or a special one that is read like it."""


class TranslationJob(Job):
    """run: its model and text sections are those of `train.start`, where that is set and they are left out.

    Without a start its text section is that of `train.teacher`, where that is set and it says nothing else.

    data_beside: fingerprints of other corpora that the model learns from, by name.
    """

    run: TranslationRun
    prepared: Prepared

    def __init__(self, run: TranslationRun) -> None:
        check_readable(*run.data.corpora)
        self._marking = PairMarking.of(run.data.placeholders, run.data.terminology)
        self._held_out = read_held_out(run)
        run, self._start = load_start(run)
        run, self._teacher = load_teacher(run)
        super().__init__(run)
        origin = self._start or self._teacher
        self._tokenizers = None if origin is None else origin.tokenizers
        check_tags(self._held_out, run, self._tokenizers)
        check_compilable(run)
        self._resampler: Resampler | None = None
        self.data_beside: dict[str, str] = {}

    def check_initial_values(self) -> None:
        """The beginnings of files with word vectors."""
        model = self.run.model
        if self._start is None:
            chosen = model.preset != "auto" or "width" in model.model_fields_set
            model.embeddings.check(model.width if chosen else None)

    def prepare(self) -> None:
        """The corpora as token shards; the preset and the size of batches for so many pairs."""
        run = self.run
        data, folder = run.data, run.out.parent / "prepared"
        known = self._tokenizers
        text = run.text if known is None else known.with_dropout(run.text.subword.resampling)
        sample, marking = data.vocabulary_sample, self._marking
        self.prepared = prepare(data.corpora, data.cleaning, text, folder, data.temperature, sample, marking=marking)
        pairs = len(self.prepared.dataset)
        data = data.model_copy(update={"batch": data.batch.sized(pairs)})
        self.run = run.model_copy(update={"data": data, "model": run.model.resolved(pairs)})

    def build(self) -> Seq2Seq:
        """Raises ConfigError where texts are longer than its positions."""
        tokenizers = self.prepared.tokenizers
        sizes = tokenizers.source.size, tokenizers.target.size
        model = self.run.model.build(*sizes, tokenizers.reads_vectors)
        self._longest = tuple(limit.tokens for limit in model.limits)
        check_lengths(model.limits, self.run.data, self.prepared, self._held_out)
        return model

    def initialise(self, model: Seq2Seq) -> Mapping[str, float]:  # type: ignore[override]
        """The parameters of `train.start`, or word vectors from files; gives the shares of entries that have one."""
        if self._start is not None:
            copy_parameters(self._start, model)
            return self._start.meta.embeddings
        embeddings = self.run.model.embeddings
        embeddings.check(self.run.model.width)
        tables = model.encoder.embedding.tokens, model.decoder.embedding.tokens
        return embeddings.fill(*tables, self.prepared.tokenizers)

    @property
    def model_width(self) -> int:
        """d."""
        return self.run.model.width

    def outline(self, model: nn.Module) -> str:
        """Preset, parameters, vocabulary, pairs."""
        vocabulary = self.prepared.tokenizers.target.size
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary {vocabulary:,} · "
            f"{self.examples:,} pairs"
        )

    @property
    def contents(self) -> Mapping[str, Content]:
        """The corpora and the validation sets."""
        data = self.run.data
        return {
            "data": Content(data.training, self.prepared.dataset.fingerprint),
            "valid": Content(data.validation, digest(self._held_out)),
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        """(N, 2) tokens of source and target."""
        return self.prepared.dataset.lengths

    @property
    def batch_tokens(self) -> int:
        """`data.batch.tokens`."""
        tokens = self.run.data.batch.tokens
        assert tokens is not None, "preparing has chosen it"
        return tokens

    def peak_tokens(self) -> int:
        """More than a batch has where subwords are drawn anew, and in both passes of R-Drop."""
        tokens = max(self.batch_tokens, int(self.lengths.max()) + 1)
        if self.run.text.subword.resampling:
            tokens = int(tokens * _LONGER_BY_DROPOUT)
        return tokens * self.run.train.objective.passes

    def activation_bytes(self, model: Seq2Seq, tokens: int, free: int) -> int:
        """Measured on short sentences."""
        return trained_bytes(model, tokens, int(self.lengths.max()) + 1, free)

    def plan(self, epoch: int) -> BatchPlan:
        """Pairs of like length together."""
        return plan_epoch(self.lengths, self.run.data.batch, self.run.train.seed, epoch, self.prepared.parts)

    def padding(self, plan: BatchPlan) -> str:
        """Of both sides."""
        source, target = plan.padding_waste
        return f"padding is {source:.1%} of the source and {target:.1%} of the target"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[Batch]:
        """Read and padded by a thread, and split anew by processes where there is BPE-dropout."""
        if self.run.text.subword.resampling and self._resampler is None:
            self._resampler = Resampler(self.prepared.tokenizers, self.run.train.seed, self._longest)
        return Loader(self.prepared.dataset, plan, start, self._resampler, epoch, pin)

    def objective(self, device: torch.device) -> Objective:
        """`train.objective`, with `train.teacher_forcing`."""
        train, prepared = self.run.train, self.prepared
        predict = ScheduledSampling(train.teacher_forcing)
        return train.objective.build(
            LossContext(prepared.tokenizers.target, prepared.dataset.target_counts, device, predict)
        )

    def trial(self, model: Seq2Seq) -> Batch:
        """Two pairs."""
        if model.vectors is None:
            sources = [[_TOKEN] * source for source, _ in _TRIAL]
        else:
            sources = [torch.zeros(source, model.vectors).numpy() for source, _ in _TRIAL]  # type: ignore[misc]
        return collate(sources, [[_TOKEN] * target for _, target in _TRIAL], range(len(_TRIAL)))

    def validator(self, model: Seq2Seq, device: torch.device) -> ValidationSets:
        """Loss, BLEU and `train.metric` of each validation set."""
        loaded = LoadedModel(model, self.prepared.tokenizers, Meta(step=0), self.run.model_dump(mode="json"))
        translator = Translator.of(loaded, device, report_cut=False)
        return ValidationSets(self._held_out, model, translator, self.run.train.validation_beam, self.run.train.metric)

    def flops_per_target_token(self) -> float:
        """Of the corpus's mean token, its share of the source's included."""
        tokenizers = self.prepared.tokenizers
        sizes = tokenizers.source.size, tokenizers.target.size
        return flops_per_target_token(
            self.run.model, *sizes, self.lengths, tokenizers.reads_vectors, self.run.train.objective.passes
        )

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """A folder that `Translator.load` reads."""
        data = self.run.data
        before = Meta(step=0) if self._start is None else self._start.meta
        tags = [*before.tags, *(tag for corpus in data.corpora for tag in corpus.tags)]
        meta = Meta(
            step=step,
            averaged_steps=averaged_steps,
            source_language=data.source_language,
            target_language=data.target_language,
            target_languages=tuple(dict.fromkeys([*before.target_languages, *data.languages])),
            tags=tuple(dict.fromkeys(tags)),
            teacher=before.teacher if self._teacher is None else self._teacher.note,
            licence=data.licence,
            scores=() if validation is None else scores(validation, data.validation),
            data=dict(zip(map(str, data.corpora), self.prepared.fingerprints, strict=True)) | self.data_beside,
            embeddings=dict(self.notes),
        )
        write_model_folder(folder, parameters, dump_settings(self.run), self.prepared.tokenizers, meta)

    def close(self) -> None:
        """End the processes that split subwords."""
        if self._resampler is not None:
            self._resampler.close()


def check_compilable(run: TranslationRun) -> None:
    """Raises ConfigError where `train.compile` asks for what the model does not have."""
    families = run.model.encoder, run.model.decoder
    if run.train.compile and not any(family.compilable for family in families):
        kinds = " and ".join(sorted({family.kind for family in families}))
        raise ConfigError(f"train.compile=true compiles Transformer layers, and a {kinds} model has none: leave it out")


def scores(validation: Validation, data: str) -> tuple[Score, ...]:
    """All but the loss, on all validation sets together and on each of several. data: what they are called."""
    own = tuple(
        Score(metric=measure.name, value=measure.value, signature=measure.signature, data=data)
        for measure in sorted(validation.measures, key=lambda measure: measure.better is None)
        if measure.key != "loss"
    )
    return own + tuple(score for name, one in validation.sets.items() for score in scores(one, name))
