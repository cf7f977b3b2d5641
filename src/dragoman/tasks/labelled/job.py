"""`LabelledJob`, the base class of jobs that train a model with a head on labelled examples."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dragoman.base.log import info, warn
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.epoch import Part
from dragoman.data.batches.labelled import LabelledBatch
from dragoman.data.batches.plan import BatchPlan, plan_epoch
from dragoman.data.held_out.check import Finding, check_examples
from dragoman.data.held_out.texts import NO_KEYS, TextKeys
from dragoman.data.labelled.examples import fingerprint
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.readers import ReaderSettings, reader_of
from dragoman.inference.prediction.heads.report import compare_with_labels
from dragoman.metrics.score import Score
from dragoman.models.description.describe import count_operations
from dragoman.models.heads.union import HeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.models.parts import count_parameters
from dragoman.tasks.corpora.job import activation_bytes
from dragoman.tasks.labelled.card import report_on_validation, training_facts, write_card_section
from dragoman.tasks.labelled.config import LabelledRun, validation_interval
from dragoman.tasks.labelled.contradictions import check_training_labels
from dragoman.tasks.labelled.held_out import LabelledSets
from dragoman.tasks.labelled.length_limit import length_limit
from dragoman.tasks.labelled.ngrams import estimate_ngrams, vocabulary_of, with_head
from dragoman.tasks.labelled.objective import LabelObjective
from dragoman.tasks.labelled.rows import Row, collate_rows, count_labels
from dragoman.tasks.labelled.unknown_labels import check_labels
from dragoman.tasks.labelled.validator import Adjust, LabelledValidator
from dragoman.tasks.start.encoder import fill_encoder, head_rate, load_encoder
from dragoman.tasks.start.settings import StartedRun
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers, train_tokenizers
from dragoman.text.unknown_tokens import UnknownTokens, check_unknown, has_unknown_tokens
from dragoman.training.objectives.objective import Objective
from dragoman.training.progress.final_steps import FinalSteps
from dragoman.training.task import Content, Job
from dragoman.training.validation import Validation

_CARD_SAMPLE = 200
"""Number of held-out examples from whose texts the model card's language is detected."""


class LabelledJob(Job):
    """The job of a run with labelled examples, which are held in memory.

    Subclasses read the examples, choose the settings of the head that depend on them, and define the loss and the
    scores. An example may have several inputs, each of which is a row of the epoch.
    """

    run: LabelledRun
    train: Sequence[Any]
    valid: Sequence[Any]
    sets: LabelledSets

    def __init__(self, run: LabelledRun, started: StartedRun | None = None, task: str | None = None) -> None:
        """started: the run with the encoder of `train.start`, if it is already loaded. task: name of the task if it is
        one of several tasks of a run.
        """
        self.train, self.valid = self.read(run)
        started = started or load_encoder(run)
        self._tokenizers, self._task = started.tokenizers, task
        super().__init__(started.run, started.start)

    unit = "labels"

    longest: int | None = 4096
    """Default of `data.length` for models without a limit. The memory of self-attention grows with its square."""

    new_head_rate = 10.0
    """Default of `train.head_rate` for a new head on a pre-trained encoder."""

    # Defined by the task:

    @abstractmethod
    def read(self, run: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Read the training examples and the held-out examples. Raises DataError."""

    @abstractmethod
    def texts(self, example: Any) -> Sequence[str]:
        """Return the texts of an example, from which a vocabulary is learned."""

    @abstractmethod
    def resolve_head(self, head: Any) -> HeadConfig:
        """Return the settings of the head, with those that depend on the training examples."""

    @abstractmethod
    def build_objective(self, rows: Sequence[Row]) -> LabelObjective:
        """Return the objective. rows: the training rows."""

    def labels(self, example: Any) -> Sequence[str]:
        """Return the class labels of an example, which the model card counts."""
        return ()

    def symbols(self) -> Sequence[str]:
        """Return the tags that the vocabulary needs."""
        return ()

    def choose_metric(self, metric: str, head: Any) -> str:
        """Return the metric that selects the best checkpoint.

        metric: the metric of the settings. head: the settings of the head that `resolve_head` returned.
        """
        return metric

    def further_scores(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Sequence[Score]:
        """Return further scores of the predictions of the held-out examples, such as a threshold."""
        return ()

    def adjustment(self) -> Adjust | None:
        """Return a function that adjusts the outputs for the held-out examples before they are predictions."""
        return None

    def parts(self) -> Sequence[Part]:
        """Return the corpora of an epoch in the order of the rows; empty for one corpus, which is read once."""
        return ()

    def lengths_of(self, row: Row) -> tuple[int, ...]:
        """Return the number of tokens of each side of a row, of which the longest counts for the size of a batch."""
        return (len(row[0].ids),)

    def check_inputs(self, examples: Sequence[Any], inputs: Sequence[Sequence[ModelInput]], name: str) -> None:
        """Report examples that the model cannot predict correctly. name: name of the examples in messages."""

    def check_labels(self) -> Iterator[Finding]:
        """Yield the problems of the labels of the held-out examples."""
        train, valid = (chain.from_iterable(map(self.labels, examples)) for examples in (self.train, self.valid))
        named = getattr(self.run.model.head, "labels", None) or ()
        return check_labels(chain(named, train), valid, self.run.data.names("valid"))

    # The interface of the training loop:

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers, available after `prepare`. Both sides are the same."""
        assert self._tokenizers is not None, "`prepare` learns the vocabulary"
        return self._tokenizers

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the texts."""
        return self.tokenizers.source

    def check_held_out(self) -> Iterator[Finding]:
        """Compare the texts and labels of the held-out examples with those of the training examples."""
        names = self.run.data.names("train"), self.run.data.names("valid")
        yield from check_training_labels(self.train, self.valid, names, texts=self.texts, labels=self.labels)
        if not self.run.data.valid_sets:  # chosen by `prepare`, without overlap
            return
        yield from self.check_labels()
        train, valid = (list(map(self.texts, examples)) for examples in (self.train, self.valid))
        yield from check_examples(train, valid, names[1])

    def prepare(self) -> None:
        """Hold out examples, learn the vocabulary, resolve the settings, and encode the examples.

        A task of several is divided before (`hold_out`), because the tasks share their texts and their vocabulary.
        """
        if self._task is None:
            self.leave_out(self.hold_out(NO_KEYS))
        run = self.run = self.run.model_copy(update={"model": self.run.model.resolve(len(self.train))})
        if self._tokenizers is None:
            subword = vocabulary_of(run).with_size(len(self.train))
            text = run.text.model_copy(update={"subword": subword, "shared": True})
            self._tokenizers = train_tokenizers(text, iter(()), self.training_texts())
        if symbols := self.symbols():
            self._tokenizers = self._tokenizers.with_tags([*self._tokenizers.tags, *symbols])
        model = with_head(run.model, self.resolve_head(run.model.head))
        limit = length_limit(model, self.tokenizers, run.data.length, self.longest)
        data = run.data.model_copy(update={"batch": run.data.batch.with_size(len(self.train)), "length": limit})
        train = run.train.model_copy(
            update={
                "metric": self.choose_metric(run.train.metric, model.head),
                "head_rate": head_rate(self.start, run.train.head_rate, model.head, self.new_head_rate),
            }
        )
        self.run = run.model_copy(update={"model": model, "data": data, "train": train})
        language, factored = model.encoder.sentence_language, model.factors is not None
        settings = ReaderSettings(limit, sentence_language=language, reads_factors=factored)
        self._reader = reader_of(model.head, self.tokenizer, settings)
        self._rows = self._encode(self.train, "training")
        self._valid_inputs = self._reader.encode(self.valid)
        self.check_inputs(self.valid, self._valid_inputs, "validation")
        self._check_unknown(self._valid_inputs, "validation")
        self._valid_rows = self._with_targets(self.valid, self._valid_inputs, known=False)
        self._lengths = np.array(list(map(self.lengths_of, self._rows)), np.int32)
        if train.validate_every is None:
            updates = -(-len(self.plan(0)) // self.batches_per_update)
            train = train.model_copy(update={"validate_every": validation_interval(updates, train.limited)})
            self.run = self.run.model_copy(update={"train": train})

    def hold_out(self, known: TextKeys) -> TextKeys:
        """Choose the sets that the recipe does not name, and return their keys beside `known`, those of other tasks."""
        data, text = self.run.data, self.held_out_text
        self.sets = LabelledSets.open(data, self.run.out, self.train, text, self.labels, task=self._task, known=known)
        self.valid = self.valid or ([] if self.sets.stored is None else self.sets.stored.valid)
        self.run = self.run.model_copy(update={"data": self.sets.complete(data)})
        return known | self.sets.keys

    def leave_out(self, keys: TextKeys) -> None:
        """Leave the texts of held-out sets out of training. Raises DataError if nothing is left."""
        self.train = self.sets.remaining(self.train, keys, self.run.data.names("train"))

    def held_out_text(self, example: Any) -> str:
        """Return the text by which an example is held out."""
        return self.texts(example)[0]

    def store_inputs(self) -> None:
        """Store the examples that are held out."""
        self.sets.store()

    @property
    def size(self) -> int:
        """Number of training examples, some of which may be divided into several rows."""
        return len(self.train)

    def training_texts(self) -> Iterator[str]:
        """Yield the texts of the training examples."""
        return chain.from_iterable(map(self.texts, self.train))

    def share(self, model: EncoderOnlyConfig, tokenizers: Tokenizers) -> None:
        """Use the encoder and the vocabulary of a run with several tasks. Must be called before `prepare`."""
        self._tokenizers = tokenizers
        self.run = self.run.model_copy(update={"model": model.model_copy(update={"head": self.run.model.head})})

    def _encode(self, examples: Sequence[Any], name: str) -> list[Row]:
        """Encode examples, and report how many are cut or divided."""
        inputs = self._reader.encode(examples)
        cut = [sum(each.cut for each in group) for group in inputs]
        if any(cut):
            warn(
                f"{sum(map(bool, cut)):,} of {len(examples):,} {name} examples are longer than "
                f"{self.run.data.length} tokens and are cut; the longest loses {max(cut):,} tokens. To keep them "
                "whole, raise data.length"
            )
        if divided := sum(len(group) > 1 for group in inputs):
            info(f"Data: {divided:,} of {len(examples):,} {name} examples are divided into several inputs.")
        self.check_inputs(examples, inputs, name)
        self._check_unknown(inputs, name)
        return self._with_targets(examples, inputs)

    def _check_unknown(self, inputs: Sequence[Sequence[ModelInput]], name: str) -> None:
        """Report the fraction of unknown tokens. Raises DataError if it exceeds `data.max_unknown`."""
        if has_unknown_tokens(self.tokenizer):
            counts = UnknownTokens.of(each.ids for group in inputs for each in group)
            if counts.unknown:
                info(f"Data: {counts.fraction:.2%} of the tokens of the {name} examples are unknown.")
            check_unknown(f"the {name} examples", {"text": counts}, self.run.data.max_unknown)

    def _with_targets(
        self, examples: Sequence[Any], inputs: Sequence[Sequence[ModelInput]], known: bool = True
    ) -> list[Row]:
        return [
            row
            for example, group in zip(examples, inputs, strict=True)
            for row in zip(group, self._reader.target(example, group, known), strict=True)
        ]

    @property
    def model_width(self) -> int:
        """The model width d."""
        return self.run.model.width

    def initialise(self, model: Any) -> Mapping[str, float]:
        """Copy the parts of `train.start`, where a head for other labels is new, or estimate a linear model."""
        if self.start is not None:
            fill_encoder(self.start, model, self.run, self.tokenizers)
        if self.is_estimated:
            estimate_ngrams(model, self._rows, self.build_objective(self._rows).class_weights)
        return {}

    @property
    def is_estimated(self) -> bool:
        """Whether the model is linear."""
        return self.run.model.is_linear

    def outline(self, model: nn.Module) -> str:
        """Return one line with the preset and the numbers of parameters, vocabulary entries and examples."""
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{self.tokenizer.size:,} · {len(self.train):,} examples"
        )

    @property
    def contents(self) -> Mapping[str, Content]:
        """The training examples (key `data`) and the held-out examples (key `valid`)."""
        data = self.run.data
        return {
            "data": Content(data.names("train"), fingerprint(self.train)),
            "valid": Content(data.names("valid"), fingerprint(self.valid)),
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of tokens of each side of each row (N, sides), with special symbols."""
        return self._lengths

    @property
    def batch_tokens(self) -> int:
        """The token budget of a batch, `data.batch.tokens`."""
        tokens = self.run.data.batch.tokens
        assert tokens is not None, "`prepare` sets the batch size"
        return tokens

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Estimate the memory of a forward pass with the function `activation_bytes`."""
        return activation_bytes(model, tokens, int(self.lengths.max()), free)

    def target_token_count(self) -> int:
        """Return the number of labels of an epoch."""
        return self.label_count

    def flops_per_target_token(self) -> float:
        """Return the FLOPs of an update divided by its number of labels, for rows of mean length."""
        mean = float(self._lengths.mean())
        operations = count_operations(self.run.model, self.tokenizers.sizes, max(1, round(mean)))
        return operations.training * float(self._lengths.sum()) / max(1, self.label_count)

    @property
    def label_count(self) -> int:
        """Number of labels of all training rows."""
        return sum(count_labels(target) for _, target in self._rows)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan the batches of an epoch. Each batch contains rows of similar length."""
        return plan_epoch(self._lengths, self.run.data.batch, self.run.train.seed, epoch, self.parts(), special=0)

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the fraction of padding."""
        return f"padding is {plan.padding_waste[0]:.1%}"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[LabelledBatch]:
        """Yield the batches of the plan."""
        for index in range(start, len(plan)):
            batch = collate_rows(self._rows, plan.batches[index].tolist())
            yield batch.pin_memory() if pin else batch

    def objective(self, device: torch.device) -> Objective:
        """Return the loss of the task."""
        return self.build_objective(self._rows)

    def validator(self, model: EncoderOnly, device: torch.device) -> LabelledValidator:
        """Return a validator that computes the loss and the metrics of the task on the held-out examples."""
        return LabelledValidator(
            model,
            self._reader,
            self.valid,
            self._valid_inputs,
            collate=partial(collate_rows, self._valid_rows),
            objective=self.objective(device),
            judge=partial(compare_with_labels, self.run.model.head, samples=0),
            further=self.further_scores,
            adjust=self.adjustment(),
        )

    def measure(self, folder: Path, validation: Validation) -> None:
        """Add scores with intervals and a baseline, and the numbers of labels, to the model card."""
        device, steps = self.run.train.device, FinalSteps(self.deadline)
        report = report_on_validation(folder, self.valid, device, steps, task=self._task)
        facts = [("Training examples", f"{len(self.train):,}")]
        if self._task is None:
            facts += training_facts(self.run, self.start, self.contents["valid"])
        labels = tuple(
            [label for example in each for label in self.labels(example)] for each in (self.train, self.valid)
        )
        write_card_section(
            folder, report, self.run.data.names("valid"), (labels[0], labels[1]), facts=facts, task=self._task
        )

    def measuring_seconds(self, limit: float, validation: float) -> float:
        """See `Job.measuring_seconds`; the validation set is predicted once more."""
        return super().measuring_seconds(limit, validation) + validation

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata, including language, licence and fingerprints of the examples."""
        data = self.run.data
        known = {"source_language": data.language, "licence": data.licence, "data": self.fingerprints}
        return super().meta(step, validation, averaged_steps).model_copy(update=known)

    def card_samples(self) -> dict[str, list[str]]:
        """Return the texts of some held-out examples."""
        return {"source": list(chain.from_iterable(map(self.texts, self.valid[:_CARD_SAMPLE])))}

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of the training examples, by the names of their corpora."""
        return {self.run.data.names("train"): self.contents["data"].fingerprint}
