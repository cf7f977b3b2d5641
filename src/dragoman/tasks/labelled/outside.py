"""`OutsideShift`: a lower score of the tag outside spans, with which a tagger finds more of the spans."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from dragoman.data.labelled.examples import TaggedSentence
from dragoman.inference.prediction.heads.chains import TagSequence, lower_tag
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.tagging import WordTagger
from dragoman.metrics.labels.spans import OUTSIDE, Convention, Scheme, find_spans
from dragoman.metrics.score import Score
from dragoman.training.ranks.ranks import Ranks
from dragoman.training.validation import Validation

_SHIFTS = np.arange(0, 5.5, 0.5).tolist()
_FEWEST_SPANS = 50
"""Minimum number of correct spans. With fewer, the best amount is a matter of chance."""

_BIASES = ("head.output.bias", "head.emissions.output.bias")
_KEY = "outside_shift"

Outputs = Sequence[Sequence[Any]]
"""The outputs of `compute_outputs` for the inputs of each example."""


class OutsideShift:
    """Chooses the amount by which the score of O is lowered: the one with the best F1 on the validation set.

    Where spans are rare and most of their words unknown, the likelihood makes a tagger cautious: its precision is
    several times its recall. A lower score of O exchanges one for the other, like the threshold of a classifier that is
    chosen for F1 (Lewis 1995). F1 on the same set is therefore slightly too high (EXPERIMENTS.md). The bias of the head
    in a model folder contains the amount (`store_shift`).
    """

    def __init__(self, reader: WordTagger, scheme: Scheme, convention: Convention) -> None:
        """scheme: that of the tags of the reader, one of which is O. convention: that of F1."""
        self._reader, self._scheme, self._convention = reader, scheme, convention
        self._outside = reader.labels.index(OUTSIDE)

    def __call__(
        self,
        examples: Sequence[TaggedSentence],
        inputs: Sequence[Sequence[ModelInput]],
        outputs: Outputs,
        ranks: Ranks,
    ) -> tuple[Outputs, Score]:
        """Return the outputs with the lower score of O, and the amount. It is 0 for fewer than 50 spans.

        inputs, outputs: those of each example of this rank. All ranks choose the same amount. Larger amounts are tried
        until F1 falls.
        """
        gold = [set(find_spans(example.tags or (), self._scheme, self._convention)) for example in examples]
        (total,) = ranks.sum([sum(map(len, gold))])
        chosen, best, kept = 0.0, -1.0, outputs
        for amount in _SHIFTS if total >= _FEWEST_SPANS else []:
            lowered = self._lower(inputs, outputs, amount)
            correct = predicted = 0
            for example, rows, results, spans in zip(examples, inputs, lowered, gold, strict=True):
                tags = self._reader.predict(example, rows, results).tags
                found = find_spans(tags, self._scheme, self._convention)
                correct, predicted = correct + len(spans.intersection(found)), predicted + len(found)
            f1 = 2 * (sums := ranks.sum([correct, predicted]))[0] / (sums[1] + total)
            if f1 < best:
                break
            if f1 > best:
                chosen, best, kept = amount, f1, lowered
        return kept, Score("score of O lowered by (best on this set)", chosen, key=_KEY, digits=1)

    def _lower(self, inputs: Sequence[Sequence[ModelInput]], outputs: Outputs, amount: float) -> Outputs:
        flat = [output for group in outputs for output in group]
        if not amount or not flat:
            return outputs
        if isinstance(flat[0], TagSequence):
            lowered = iter(lower_tag(flat, [each for group in inputs for each in group], self._outside, amount))
        else:
            change = np.zeros(len(self._reader.labels), np.float32)
            change[self._outside] = amount
            lowered = (logits - change for logits in flat)
        return [[next(lowered) for _ in group] for group in outputs]


def store_shift(
    parameters: Mapping[str, Tensor], labels: Sequence[str], validation: Validation
) -> Mapping[str, Tensor]:
    """Return the parameters of a tagger with the amount that a validation chose, if any, in the bias of its head."""
    amount = next((score.value for score in validation.scores if score.key == _KEY), 0.0)
    if not amount:
        return parameters
    name = next(name for name in _BIASES if name in parameters)
    bias = parameters[name].clone()
    bias[labels.index(OUTSIDE)] -= amount
    return {**parameters, name: bias}
