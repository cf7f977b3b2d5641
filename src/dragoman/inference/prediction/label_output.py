"""The number that explains a prediction: the logit of a label, the score of an answer, or the logit of a token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.data.labelled.examples import Question
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.chains import TagSequence
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.filling import MASK_SYMBOL, FillPrediction
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.inference.prediction.heads.tagging import TagPrediction
from dragoman.inference.prediction.input_words import texts_of
from dragoman.inference.subject import SubjectSettings, check_not_blank
from dragoman.models.heads.masked_language_model import MaskedOutput
from dragoman.models.heads.tagging import ChainOutput
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class PredictedExample:
    """An example with the inputs of the model for it, and its prediction."""

    example: Any
    inputs: Sequence[ModelInput]
    prediction: Prediction


@dataclass(frozen=True)
class LabelOutput:
    """An output of the model to explain: the input that contains it, and its indices, which are summed.

    measure: logit, score or predicted value. name: the label in messages. label: the predicted label as text.
    competing: the axis of an index along which the alternatives of the label are; None for a predicted value.
    """

    row: ModelInput
    indices: tuple[tuple[int, ...], ...]
    measure: str
    name: str
    label: str
    competing: int | None = -1

    @property
    def description(self) -> str:
        """Describes the value of `select`."""
        return f"{self.measure} of {self.name}" if self.name else self.measure

    def select(self, outputs: Any) -> Tensor:
        """Return the scalar from the outputs of the model for one row."""
        values = _values(outputs)
        return torch.stack([values[(0, *index)] for index in self.indices]).sum()

    def log_probability(self, outputs: Any) -> Tensor:
        """Return the log-probability of the label, or the predicted value. A tag is independent of the other tags."""
        if self.competing is None:
            return self.select(outputs)
        values = _values(outputs)[0].log_softmax(self.competing)
        return torch.stack([values[index] for index in self.indices]).sum()

    def shortened(self, positions: Sequence[int]) -> ModelInput:
        """Return the row without some of its tokens."""
        return self.row.without(positions)

    def without(self, positions: Sequence[int], outputs: Any) -> float:
        """Return the scalar from the outputs of the model for the row without some of its tokens.

        It is NaN if it belongs to one of these tokens.
        """
        values, total = _values(outputs), 0.0
        for index in self.indices:
            if len(index) > 1 and index[0] in positions:
                return float("nan")
            shift = sum(position < index[0] for position in positions) if len(index) > 1 else 0
            total += float(values[(index[0] - shift, *index[1:]) if index else ()])
        return total


@dataclass(frozen=True)
class FilledMask:
    """The logit of a token at a masked place of an input, with the methods of `LabelOutput`."""

    row: ModelInput
    place: int
    token: int
    name: str
    label: str
    measure: str = "logit"
    competing: int | None = -1

    @property
    def description(self) -> str:
        """See `LabelOutput.description`."""
        return f"{self.measure} of {self.name}"

    def select(self, outputs: MaskedOutput) -> Tensor:
        """See `LabelOutput.select`."""
        return self._logits(outputs)[self.token]

    def log_probability(self, outputs: MaskedOutput) -> Tensor:
        """See `LabelOutput.log_probability`."""
        return self._logits(outputs).log_softmax(-1)[self.token]

    def _logits(self, outputs: MaskedOutput) -> Tensor:
        return outputs.logits(torch.tensor([self.place], device=outputs.states.device))[0]

    def shortened(self, positions: Sequence[int]) -> ModelInput:
        """See `LabelOutput.shortened`."""
        place = self.place - sum(position < self.place for position in positions)
        return replace(self.row.without(positions), places=() if self.place in positions else (place,))

    def without(self, positions: Sequence[int], outputs: NDArray[np.float32]) -> float:
        """See `LabelOutput.without`."""
        return float("nan") if self.place in positions else float(outputs[0, self.token])


def _values(outputs: Any) -> Any:
    """Return the numbers that are explained. Of a tagger with transitions, these are the emissions."""
    return outputs.emissions if isinstance(outputs, ChainOutput | TagSequence) else outputs


def explained_output(
    tokenizer: Tokenizer, labels: Sequence[str], predicted: PredictedExample, settings: SubjectSettings
) -> LabelOutput | FilledMask:
    """Return the output of the model that a prediction follows from.

    labels: names of the classes. settings: the word or the mask that is explained. Raises ConfigError for a word or
    mask that does not exist or that the model does not predict, DataError for a blank text and for one without
    `<mask>`, and ModelError for a head whose predictions cannot be explained.
    """
    prediction, word, mask = predicted.prediction, settings.word, settings.mask
    if word is not None and not isinstance(prediction, TagPrediction):
        raise ConfigError("a word can be chosen only for a model that predicts tags: leave out --word")
    if mask is not None and not isinstance(prediction, FillPrediction):
        raise ConfigError("a mask can be chosen only for a masked language model: leave out --mask")
    for text in texts_of(predicted.example):
        check_not_blank(text, "text")
    if isinstance(prediction, FillPrediction):
        return _filled_mask(predicted.inputs[0], prediction, 1 if mask is None else mask)
    return _output(tokenizer, labels, predicted, word)


def _output(tokenizer: Tokenizer, labels: Sequence[str], predicted: PredictedExample, word: int | None) -> LabelOutput:
    inputs, prediction = predicted.inputs, predicted.prediction
    if isinstance(prediction, ClassPrediction):
        number = list(labels).index(prediction.label)
        return LabelOutput(inputs[0], ((number,),), "logit", repr(prediction.label), prediction.label)
    if isinstance(prediction, ValuePrediction):
        return LabelOutput(inputs[0], ((),), "predicted value", "", f"{prediction.value:.6g}", None)
    if isinstance(prediction, TagPrediction):
        index = _tagged_word(prediction) if word is None else word - 1
        if not 0 <= index < len(prediction.words):
            raise ConfigError(f"there is no word {word}: the text has {len(prediction.words)} words")
        row = next(each for each in inputs if each.first <= index < each.first + len(each.places))
        tag = prediction.tags[index]
        place = row.places[index - row.first]
        shown = f"{prediction.words[index]!r} (word {index + 1})"
        index_of_tag = place, list(labels).index(tag)
        return LabelOutput(row, (index_of_tag,), "logit", f"{tag!r} for {shown}", f"{tag} for {shown}")
    if isinstance(prediction, AnswerPrediction):
        return _answer_output(inputs, prediction, tokenizer, predicted.example)
    raise ModelError("the predictions of this model cannot be explained: inspect a model that predicts labels")


def _filled_mask(row: ModelInput, prediction: FillPrediction, number: int) -> FilledMask:
    """Return the most probable token of a mask. number: its number, counted from 1."""
    if not row.places:
        raise DataError(f"the text has no {MASK_SYMBOL}: replace the word to predict by {MASK_SYMBOL}")
    if not 1 <= number <= len(row.places):
        raise ConfigError(f"there is no mask {number}: the number of masks is {len(row.places)}")
    best = prediction.fills[number - 1][0]
    return FilledMask(row, row.places[number - 1], best.token, f"{best.text!r} for mask {number}", prediction.text)


def _tagged_word(prediction: TagPrediction) -> int:
    """Return the index of the first word of the first span, or 0."""
    spans = prediction.spans
    return next(
        (number for number, (start, _) in enumerate(prediction.offsets) if spans and start == spans[0].start), 0
    )


def _answer_output(
    inputs: Sequence[ModelInput], prediction: AnswerPrediction, tokenizer: Tokenizer, example: Question
) -> LabelOutput:
    """Return the output for the chosen span: the sum of the logits of its first and of its last token."""
    if not prediction.answer:
        return LabelOutput(inputs[0], ((0, 0), (0, 1)), "score", "having no answer", "no answer", 0)
    spans = tokenizer.spans(example.context)
    inside = [number for number, (start, end) in enumerate(spans) if start < prediction.end and end > prediction.start]
    first, last = inside[0], inside[-1]
    row = next(each for each in inputs if each.first <= first and last < each.first + len(each.places))
    places = row.places[first - row.first], row.places[last - row.first]
    indices = ((places[0], 0), (places[1], 1))
    return LabelOutput(row, indices, "score", repr(prediction.answer), prediction.answer, 0)
