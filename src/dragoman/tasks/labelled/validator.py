"""Validation of a model with a head on held-out examples."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, get_type_hints

import torch
from pydantic import TypeAdapter

from dragoman.base.cancellation import until_cancelled
from dragoman.base.progress import Progress
from dragoman.data.batches.labelled import LabelledBatch
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.readers import HeadReader
from dragoman.inference.prediction.outputs import TOKENS, compute_outputs, length_batches
from dragoman.metrics.labels.report import Report
from dragoman.metrics.score import Score
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.training.objectives.objective import Objective
from dragoman.training.ranks.ranks import Ranks, Runtime
from dragoman.training.validation import Validation, defined_scores

Judge = Callable[[Sequence[Any], Sequence[Prediction]], Report]
"""A function that compares the predictions of examples with their labels."""

FurtherScores = Callable[[Sequence[Any], Sequence[Any]], Sequence[Score]]
"""A function that returns further scores of the predictions of examples."""

Adjust = Callable[
    [Sequence[Any], Sequence[Sequence[ModelInput]], Sequence[Sequence[Any]], Ranks],
    tuple[Sequence[Sequence[Any]], Score],
]
"""A function of examples, their inputs and the outputs for these, such as `OutsideShift`. It returns the outputs that
are evaluated, and how they were adjusted."""


class LabelledValidator:
    """Validates a model on examples, which are encoded only once.

    inputs: the inputs of each example. collate: makes a batch of the inputs with these indices, counted over all
    examples. judge: compares predictions with labels. further: returns further scores. adjust: adjusts the outputs
    before they are predictions; None leaves them unchanged.
    """

    def __init__(
        self,
        model: EncoderOnly,
        reader: HeadReader,
        examples: Sequence[Any],
        inputs: Sequence[Sequence[ModelInput]],
        *,
        collate: Callable[[Sequence[int]], LabelledBatch],
        objective: Objective,
        judge: Judge,
        further: FurtherScores,
        adjust: Adjust | None = None,
    ) -> None:
        self._model, self._reader, self._examples, self._inputs = model, reader, examples, inputs
        self._collate, self._objective, self._judge, self._further = collate, objective, judge, further
        self._adjust = adjust
        self._lengths = [len(each.ids) for group in inputs for each in group]

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the examples, and all return the same result."""
        started = time.monotonic()
        rank, size = runtime.ranks.rank, runtime.ranks.size
        own = range(rank, len(self._examples), size)
        with Progress("Validating", "examples", len(own)) as progress, runtime.autocast():
            flat = [each for number in own for each in self._inputs[number]]
            computed = iter(compute_outputs(self._model, flat, runtime.device))
            outputs: Sequence[Sequence[Any]] = [[next(computed) for _ in self._inputs[number]] for number in own]
            adjusted: list[Score] = []
            if self._adjust is not None:
                examples, inputs = ([each[number] for number in own] for each in (self._examples, self._inputs))
                outputs, score = self._adjust(examples, inputs, outputs, runtime.ranks)
                adjusted.append(score)
            predictions = []
            for number, results in zip(until_cancelled(own), outputs, strict=True):
                predicted = self._reader.predict(self._examples[number], self._inputs[number], results)
                predictions.append((number, predicted))
            progress.update(len(own))
        gathered = dict(self._gather(predictions, runtime.ranks))
        ordered = [gathered[number] for number in range(len(self._examples))]
        report = self._judge(self._examples, ordered)
        loss = Score("loss", self._loss(runtime), key="loss", better="lower", digits=4)
        scores = (*defined_scores(report.scores), *self._further(self._examples, ordered), *adjusted, loss)
        return Validation(scores, time.monotonic() - started)

    def _gather(self, predictions: list[tuple[int, Any]], ranks: Ranks) -> list[tuple[int, Any]]:
        """Return the numbers and predictions of all ranks. Between ranks, a prediction is a mapping of its fields."""
        if ranks.size == 1:
            return predictions
        prediction: Any = get_type_hints(type(self._reader).predict)["return"]
        adapter = TypeAdapter(list[tuple[int, prediction]])
        parts = ranks.gather([(number, asdict(each)) for number, each in predictions])
        return [pair for part in parts for pair in adapter.validate_python(part)]

    def _loss(self, runtime: Runtime) -> float:
        total = labels = 0.0
        batches = list(length_batches(self._lengths, TOKENS))
        for rows in until_cancelled(batches[runtime.ranks.rank :: runtime.ranks.size]):
            with runtime.autocast():
                loss = self._objective(self._model, self._collate(rows).to(runtime.device))
            total += float(loss.cross_entropy)
            labels += loss.tokens
        total, labels = runtime.ranks.sum([total, labels])
        return total / labels
