"""`TranslationJob`: the data, model, loss, validation and model folder of a translation run."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import ClassVar

import torch
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.log import info, warn
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.start import Start
from dragoman.checkpoint.verdict import Verdict
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.batches.resampling import Resampler
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import check_readable
from dragoman.data.held_out.check import Finding, PairSet, check_pairs
from dragoman.data.held_out.texts import NO_KEYS, TextKeys
from dragoman.data.preparation.prepare import prepare
from dragoman.inference.control.marking import PairMarking
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu_tokenizer import AUTO, check_tokenizer
from dragoman.metrics.metric import Metric
from dragoman.metrics.score import Score
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.models.parts import count_parameters
from dragoman.statistical.alignment.pair_scoring import pair_scoring
from dragoman.statistical.alignment.word_aligner import AlignerConfig
from dragoman.tasks.corpora.job import CorpusJob, ValidationSets
from dragoman.tasks.corpora.pair_sets import PairSets
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.start.settings import load_start
from dragoman.tasks.translation.aligner_training import add_requested, check_library, token_links
from dragoman.tasks.translation.confidence import measure_confidence
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.corpus_lengths import measure_lengths
from dragoman.tasks.translation.distillation_teacher import load_teacher
from dragoman.tasks.translation.hybrid import TuningPairs
from dragoman.tasks.translation.lengths import check_lengths
from dragoman.tasks.translation.objectives.guided_alignment import TokenLinks
from dragoman.tasks.translation.objectives.scheduled_sampling import ALWAYS, ScheduledSampling
from dragoman.tasks.translation.precision_cost import measure_after_training, pooled_pairs
from dragoman.tasks.translation.precision_measurement import LONGEST_MEASUREMENT, MIN_SENTENCES
from dragoman.tasks.translation.systems import Systems, requested_systems, validation_scores
from dragoman.tasks.translation.validation import (
    build_validators,
    check_tags,
    choose_tokenizers,
    read_held_out,
    validation_metrics,
)
from dragoman.tasks.verdict.after_training import judge_after_training
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.config import VALIDATE_EVERY, LoopConfig
from dragoman.training.objectives.objective import LossContext, Objective, teacher_forcing
from dragoman.training.progress.final_steps import FinalSteps
from dragoman.training.validation import Validation

_DROPOUT_GROWTH = 1.3
"""Factor by which BPE-dropout at a rate of 0.1 increases the number of subwords."""

_TRIAL = ((3, 4), (1, 1))
"""Lengths in tokens of the source and the target of each pair in a trial batch."""
_TOKEN = 4
"""Id of an ordinary vocabulary entry."""

_SHORTEST_INTERVAL, _INTERVAL_EPOCHS = 100, 4
"""Numbers of updates and of epochs between validations of a run that only patience ends."""

_MEASURING = 0.1
"""Fraction of a time limit that is reserved for the steps after training."""


class TranslationJob(CorpusJob):
    """The job of a translation run.

    run: its settings, completed with the `model` and `text` sections of `train.start`, or with the `text` section of
    `train.teacher`. auxiliary_data: fingerprints of the auxiliary tasks' corpora, by the names of the corpora.
    """

    run: TranslationRun
    has_batch_shapes: ClassVar[bool] = True
    whole_texts: ClassVar[bool] = False
    """Whether texts of several sentences are processed as a whole."""

    def __init__(self, run: TranslationRun) -> None:
        check_readable(*run.data.corpora)
        self._marking = PairMarking.of(run.data.placeholders, run.data.terminology)
        self._held_out = read_held_out(run, run.data.valid_sets)
        self._sets = PairSets(run.data.valid_sets)
        started = load_start(run)
        self._continues = started.continues
        if started.start is not None and started.continues:
            check_languages(run, started.start)
        run, self._teacher = load_teacher(started.run)
        super().__init__(run, started.start)
        self._tokenizers = None if self._teacher is None else self._teacher.tokenizers
        if started.tokenizers is not None:
            self._tokenizers = with_new_tags(run, started.tokenizers)
        check_tags(self._held_out, run, self._tokenizers)
        check_compilable(run.model, run.train)
        requested = [f"data.{name}" for name in ("aligner", "shortlist") if getattr(run.data, name) is not None]
        if requested or run.train.objective.records_attention:
            check_library(requested, run.text.vectors is not None)
        if run.train.bleu_tokenizer != AUTO:
            check_tokenizer(run.train.bleu_tokenizer)
        self._bleu_tokenizers: list[str] = []
        self._resampler: Resampler | None = None
        self._links: TokenLinks | None = None
        self.auxiliary_data: dict[str, str] = {}
        requested_systems(run, 0)  # checks the setting
        self._systems = Systems((), "bleu")

    def check_initial_values(self) -> None:
        """Check the first lines of the files of word vectors, and warn of a reward without a trained model."""
        if self.run.train.objective.kind == "sequence_reward" and self.run.train.start is None:
            warn(
                "train.objective.kind=sequence_reward has no train.start: samples of an untrained model have hardly "
                "any reward. Train with cross_entropy first, and set train.start to the model folder"
            )
        if not self._continues:
            self.run.model.check_word_vectors()

    def check_held_out(self) -> Iterator[Finding]:
        """Compare the held-out pairs with the training corpora, unless their sources are feature vectors."""
        data, sets = self.run.data, self._held_out
        if self.run.text.vectors is None:
            pairs = [PairSet(each.name, each.sources, each.targets, each.corpus.target_language) for each in sets]
            overlaps = not data.cleaning.held_out
            languages = data.source_language, data.target_language
            yield from check_pairs(data.corpora, pairs, languages, overlaps=overlaps)

    def prepare(self) -> None:
        """Hold out pairs, prepare the corpora as token shards, and choose preset and batch size by their size."""
        self._sets = PairSets.open(self.run.data, self.run.out)
        self.run = run = self.run.model_copy(update={"data": self._sets.complete(self.run.data)})
        if self._sets.valid != run.data.valid_sets:
            self._held_out = read_held_out(run, self._sets.valid)
        data, folder = run.data, prepared_folder(run.out)
        tokenizers = self._tokenizers
        text = run.text if tokenizers is None else tokenizers.with_dropout(run.text.subword.resampling)
        sample, marking = data.vocabulary_sample, self._marking
        self.prepared = prepare(
            data.corpora,
            data.cleaning,
            text,
            folder,
            temperature=data.temperature,
            sample=sample,
            marking=marking,
            languages=(data.source_language, data.target_language),
            scoring=pair_scoring(data.cleaning),
            held_out=self._sets.keys,
        )
        self._sets.report(self.prepared.reports)
        self.check_unknown()
        pairs = len(self.prepared.dataset)
        self.resolve_settings(pairs, pairs)
        self._choose_interval()
        self._corpus_lengths = measure_lengths(data.corpora, self.prepared)
        self._choose_bleu_tokenizers()

    def _choose_interval(self) -> None:
        """Validate a run on a small corpus more often if only `patience` ends it, which would otherwise take hours."""
        train = self.run.train
        if train.validate_every is None and not train.limited:
            updates = self.target_token_count() // (self.batch_tokens * self.batches_per_update)
            every = max(_SHORTEST_INTERVAL, min(VALIDATE_EVERY, _INTERVAL_EPOCHS * updates))
            train = train.model_copy(update={"validate_every": every})
            self.run = self.run.model_copy(update={"train": train})

    def _choose_bleu_tokenizers(self) -> None:
        """Choose the tokeniser of each validation set. If all sets have the same one, it is stored with the run."""
        train, language = self.run.train, self.run.data.target_language
        self._bleu_tokenizers = choose_tokenizers(self._held_out, language, train.bleu_tokenizer)
        if len(set(self._bleu_tokenizers)) == 1:
            train = train.model_copy(update={"bleu_tokenizer": self._bleu_tokenizers[0]})
            self.run = self.run.model_copy(update={"train": train})

    def begin(self) -> None:
        """Estimate the statistical models of `systems`."""
        self._systems = Systems.estimate(self.run, self.examples, self._bleu_tokenizers[0])

    def build(self) -> Seq2Seq:
        """Build the model. Raises ConfigError if a text has more tokens than the model has positions."""
        model = self.run.model.build_for(self.tokenizers.sizes)
        self._max_lengths = tuple(limit.tokens for limit in model.limits)
        check_lengths(model.limits, self.run.data, self.prepared, self._held_out)
        return model

    @property
    def valid_sets(self) -> Sequence[CorpusConfig]:
        """The validation sets, named or held out."""
        return self._sets.valid

    @property
    def held_out_targets(self) -> TextKeys:
        """The keys of the targets that are left out of training, for text in the target language."""
        return NO_KEYS if self._sets.keys is None else TextKeys(test=self._sets.keys.targets)

    def store_inputs(self) -> None:
        """Store the pairs that are held out."""
        self._sets.store(self.run.out)

    def initialise(self, model: Seq2Seq) -> Mapping[str, float]:  # type: ignore[override]
        """Copy the parameters of `train.start`, or word vectors, into a model.

        Returns, for each side, the fraction of vocabulary entries that have a word vector.
        """
        fractions = {} if self._continues else self.run.model.fill_word_vectors(model, self.tokenizers)
        super().initialise(model)
        return self.start.loaded.meta.embeddings if self.start is not None and self._continues else fractions

    def outline(self, model: nn.Module) -> str:
        """Return one line with the preset and the numbers of parameters, vocabulary entries and pairs."""
        vocabulary = self.tokenizers.target.size
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary {vocabulary:,} · "
            f"{self.examples:,} pairs"
        )

    @property
    def validation_texts(self) -> list[list[list[str]]]:
        """The sources and targets of each validation set."""
        return [[held_out.sources, held_out.targets] for held_out in self._held_out]

    @property
    def validation_sides(self) -> list[dict[str, tuple[Tokenizer, list[str]]]]:
        """The tokenizer and the texts of each side of each validation set."""
        source, target = self.tokenizers.source, self.tokenizers.target
        return [{"source": (source, each.sources), "target": (target, each.targets)} for each in self._held_out]

    @property
    def length_growth(self) -> float:
        """Factor by which BPE-dropout increases the number of tokens in a batch; 1 without BPE-dropout."""
        return _DROPOUT_GROWTH if self.run.text.subword.resampling else 1.0

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the fraction of padding on both sides."""
        source, target = plan.padding_waste
        return f"padding is {source:.1%} of the source and {target:.1%} of the target"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[Batch]:
        """Return batches that a thread reads and pads. With BPE-dropout, processes segment the texts again."""
        if self.run.text.subword.resampling and self._resampler is None:
            self._resampler = Resampler(self.tokenizers, self.run.train.seed, self._max_lengths)
        return Loader(self.prepared.dataset, plan, start, self._resampler, epoch, pin, shapes=self.batch_shapes)

    def objective(self, device: torch.device) -> Objective:
        """Build `train.objective` with `train.teacher_forcing`."""
        train, prepared = self.run.train, self.prepared
        teacher = train.teacher_forcing
        predict = teacher_forcing if teacher == ALWAYS else ScheduledSampling(teacher)
        return train.objective.build(
            LossContext(
                prepared.tokenizers.target,
                prepared.dataset.target_counts,
                device,
                predict,
                train.bleu_tokenizer,
                self._token_links if self.run.text.vectors is None else None,
            )
        )

    def _token_links(self, config: AlignerConfig) -> TokenLinks:
        """Return the links of the training pairs, which are computed once."""
        if self._links is None:
            self._links = token_links(self.prepared, config)
        return self._links

    def trial(self, model: Seq2Seq) -> Batch:
        """Return a batch of two pairs."""
        if model.vectors is None:
            sources = [[_TOKEN] * source for source, _ in _TRIAL]
        else:
            sources = [torch.zeros(source, model.vectors).numpy() for source, _ in _TRIAL]  # type: ignore[misc]
        return collate(sources, [[_TOKEN] * target for _, target in _TRIAL], range(len(_TRIAL)))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of validation."""
        return validation_metrics(self.run.train.metric)

    def validator(self, model: Seq2Seq, device: torch.device) -> ValidationSets:
        """Return a validator that computes loss, BLEU, chrF and `train.metric` of each validation set."""
        meta = Meta(step=0, whole_texts=self.whole_texts)
        loaded = LoadedModel(model, self.tokenizers, meta, self.run.model_dump(mode="json"))
        translator = Translator.of(loaded, device, warn_unfinished=False)
        metrics, beam = self.metrics, self.run.train.validation_beam
        validators = build_validators(
            self._held_out, model, translator, beam=beam, metrics=metrics, tokenizers=self._bleu_tokenizers
        )
        return ValidationSets(validators, metrics)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata, including tags, teacher, word vectors and the corpora of auxiliary tasks."""
        data, meta = self.run.data, super().meta(step, validation, averaged_steps)
        previous = Meta(step=0) if self.start is None or not self._continues else self.start.loaded.meta
        tags = [*previous.tags, *(tag for corpus in data.corpora for tag in corpus.tags)]
        return meta.model_copy(
            update={
                "target_languages": tuple(dict.fromkeys([*previous.target_languages, *data.languages])),
                "tags": tuple(dict.fromkeys(tags)),
                "teacher": previous.teacher if self._teacher is None else self._teacher.note,
                "data": meta.data | self.auxiliary_data,
                "embeddings": dict(self.notes),
                "lengths": {**previous.lengths, **self._corpus_lengths},
                "whole_texts": self.whole_texts,
            }
        )

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write a model folder, and record the systems in that of the run."""
        super().write(folder, parameters, step, validation, averaged_steps)
        if folder == self.run.out:
            self._systems.record(folder, validation_scores(validation, self.contents["valid"].name))

    def card_scores(self, validation: Validation) -> list[tuple[str, Score]]:
        """Return BLEU, chrF and perplexity."""
        return [(validation[key].name, validation[key]) for key in ("bleu", "chrf", "perplexity")]

    def measure(self, folder: Path, validation: Validation) -> Verdict | None:
        """Add the shortlist and the aligner, measure what int8 costs, compare the systems and judge the best one."""
        steps, pooled, threads = FinalSteps(self.deadline), pooled_pairs(self._held_out), self.run.train.threads
        add_requested(folder, self.run.data, self.prepared, self.meta(0, None, ()), steps)
        sentence = validation.seconds / max(1, len(pooled.sources))  # in seconds, with the beam size of validations
        measure_after_training(folder, pooled, steps, MIN_SENTENCES * sentence)
        pairs, tokenizer = self._held_out[0], self._bleu_tokenizers[0]
        tuning = TuningPairs(pairs.name, pairs.sources, pairs.targets, tokenizer, self.run.train.metric)
        self._systems.report(folder, tuning, threads, steps)
        if self.whole_texts or self.run.text.vectors is not None:  # copying such a source is no translation
            return None
        outputs, valid, language = validation.outputs, str(pairs.corpus), pairs.corpus.target_language
        verdict = steps.run(
            "the comparison with simple systems",
            lambda: judge_after_training(folder, outputs, valid, tokenizer, language=language, threads=threads),
            remedy=f"dragoman evaluate {quote(str(folder))} makes it on a test set",
        )
        steps.run("the threshold of doubtful translations", lambda: measure_confidence(folder, pooled, threads))
        return verdict

    def measuring_seconds(self, limit: float, validation: float) -> float:
        """See `Job.measuring_seconds`; the steps of `measure` use the time that is left."""
        return min(2 * LONGEST_MEASUREMENT, _MEASURING * limit)

    def close(self) -> None:
        """Stop the processes that segment texts into subwords."""
        if self._resampler is not None:
            self._resampler.close()


def check_compilable(model: ModelConfig, train: LoopConfig) -> None:
    """Raise ConfigError if `train.compile` is set but no part of the model can be compiled."""
    families = model.encoder, model.decoder
    if train.compile and not any(family.compilable for family in families):
        kinds = " and ".join(sorted({family.kind for family in families}))
        raise ConfigError(
            f"train.compile=true compiles Transformer layers, but a {kinds} model has none: remove train.compile"
        )


def check_languages(run: TranslationRun, start: Start) -> None:
    """Raise ConfigError if the initial model has several target languages and a corpus does not specify one."""
    languages = start.loaded.meta.target_languages
    for corpus in run.data.corpora:
        if languages and corpus.target_language is None:
            raise ConfigError(
                f"the model of train.start={start.folder} has several target languages ({', '.join(languages)}), so "
                f"each corpus must specify one: set target_language of {corpus}"
            )


def with_new_tags(run: TranslationRun, tokenizers: Tokenizers) -> Tokenizers:
    """Return the tokenizers of `train.start`, extended with the tags of the run that they lack."""
    extended = run.with_all_tags(tokenizers)
    if new := extended.tags[len(tokenizers.tags) :]:
        info(
            f"Tags that the model of train.start does not have: {', '.join(new)}. "
            "Their embeddings are initialised with the mean of all embeddings."
        )
    return extended
