"""The inspection of a prediction: the attention weights, and the words that carried the label."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.data.labelled.examples import Question
from dragoman.figures.inspection import Inspection, check_not_blank, check_token_count
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.chains import TagSequence
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.filling import MASK_SYMBOL, FillPrediction
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.heads.readers import Prediction
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.inference.prediction.heads.tagging import TagPrediction
from dragoman.inference.prediction.input_words import InputWords, texts_of, token_names, words_of
from dragoman.inference.prediction.outputs import compute_outputs
from dragoman.inference.prediction.tree_inspection import inspect_tree
from dragoman.models.architectures.encoder_only import EncoderOnly
from dragoman.models.attention_weights import AttentionMap, record_rows, without_weights
from dragoman.models.heads.masked_language_model import MaskedOutput
from dragoman.models.heads.tagging import ChainOutput
from dragoman.models.relevance import Relevance, RelevantText, gradient_times_input
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer

_KIND = "encoder.self_attention"


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
        return ModelInput(_remaining(self.row.ids, positions))

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
        return ModelInput(_remaining(self.row.ids, positions), () if self.place in positions else (place,))

    def without(self, positions: Sequence[int], outputs: NDArray[np.float32]) -> float:
        """See `LabelOutput.without`."""
        return float("nan") if self.place in positions else float(outputs[0, self.token])


def _remaining(ids: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
    return tuple(token for place, token in enumerate(ids) if place not in positions)


def _values(outputs: Any) -> Any:
    """Return the numbers that are explained. Of a tagger with transitions, these are the emissions."""
    return outputs.emissions if isinstance(outputs, ChainOutput | TagSequence) else outputs


def explained_output(
    tokenizer: Tokenizer,
    labels: Sequence[str],
    example: Any,
    inputs: Sequence[ModelInput],
    prediction: Prediction,
    word: int | None = None,
    mask: int | None = None,
) -> LabelOutput | FilledMask:
    """Return the output of the model that a prediction follows from. Arguments and errors: see `inspect_prediction`."""
    _check_choices(prediction, word, mask)
    for text in texts_of(example):
        check_not_blank(text, "text")
    if isinstance(prediction, FillPrediction):
        return _filled_mask(inputs[0], prediction, 1 if mask is None else mask)
    return _output(labels, inputs, prediction, word, tokenizer, example)


def _check_choices(prediction: Prediction, word: int | None, mask: int | None) -> None:
    """Raise ConfigError for a word or a mask that the prediction does not have."""
    if word is not None and not isinstance(prediction, TagPrediction):
        raise ConfigError("a word can be chosen only for a model that predicts tags: leave out --word")
    if mask is not None and not isinstance(prediction, FillPrediction):
        raise ConfigError("a mask can be chosen only for a masked language model: leave out --mask")


def inspect_prediction(
    model: EncoderOnly,
    tokenizer: Tokenizer,
    labels: Sequence[str],
    example: Any,
    inputs: Sequence[ModelInput],
    prediction: Prediction,
    word: int | None = None,
    mask: int | None = None,
) -> Inspection:
    """Return the attention weights for an example, and the relevance of its words for the prediction.

    A parser has a tree instead of the relevance.

    labels: names of the classes. word: number of the word, counted from 1, whose tag is explained; None: the first word
    of the first span, or the first word. mask: number of the `<mask>` whose token is explained; None: the first. Raises
    ConfigError for a word or mask that does not exist or that the model does not predict, DataError for a blank or too
    long text and for one without `<mask>`, and ModelError for a head whose predictions cannot be explained.
    """
    _check_choices(prediction, word, mask)
    texts = texts_of(example)
    if isinstance(prediction, TreePrediction):
        check_not_blank(texts[0], "text")
        return inspect_tree(model, tokenizer, example, inputs[0], prediction)
    output = explained_output(tokenizer, labels, example, inputs, prediction, word, mask)
    check_token_count(len(output.row.ids))
    device = next(model.parameters()).device
    tokens = torch.tensor([output.row.ids], device=device)
    arguments = (tokens, torch.ones_like(tokens, dtype=torch.bool))
    names = token_names(tokenizer, output.row)
    lengths = _encoded_lengths(model, output.row.ids)
    weights = record_rows(model, *arguments)
    maps = [AttentionMap(name, _diagonal(each, lengths), names, names) for name, each in weights.items()]
    value, rows = gradient_times_input(model, arguments, output.select)
    products = np.concatenate([row[:length] for row, length in zip(rows, lengths, strict=True)])
    words = list(words_of(tokenizer, example, output.row, isinstance(output, FilledMask)))
    relevance = _relevance(words, output, value, products)
    erasure = _erasure(model, words, output, value)
    absent = without_weights(model, (_KIND,))
    places = prediction.fills if isinstance(prediction, FillPrediction) else ()
    fills = tuple(tuple((each.text, each.probability) for each in place) for place in places)
    return Inspection(" / ".join(texts), output.label, tuple(maps), tuple(absent), relevance, erasure, fills)


def _encoded_lengths(model: EncoderOnly, ids: Sequence[int]) -> list[int]:
    """Return the lengths of the rows that the model encodes for an input: one row, or one per text of a pair."""
    if not model.encodes_separately:
        return [len(ids)]
    first = list(pairwise(ids)).index((EOS, BOS)) + 1
    return [first, len(ids) - first]


def _diagonal(weights: NDArray[np.float32], lengths: Sequence[int]) -> NDArray[np.float32]:
    """Return the weights (heads, S, S) of an input. Texts that are encoded separately do not attend to each other.

    weights: (N, heads, W, W) of the rows that the model encodes. lengths: number of tokens of each row.
    """
    joined = np.zeros((weights.shape[1], sum(lengths), sum(lengths)), np.float32)
    start = 0
    for row, length in zip(weights, lengths, strict=True):
        part = slice(start, start + length)
        joined[:, part, part] = row[:, :length, :length]
        start += length
    return joined


def _output(
    labels: Sequence[str],
    inputs: Sequence[ModelInput],
    prediction: Prediction,
    word: int | None,
    tokenizer: Tokenizer,
    example: Any,
) -> LabelOutput:
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
        return _answer_output(inputs, prediction, tokenizer, example)
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


def _relevance(
    texts: Sequence[InputWords], output: LabelOutput | FilledMask, value: float, products: NDArray[np.float64]
) -> Relevance:
    """Return the relevance of each word by gradient × input, given that of each token."""
    found = [
        RelevantText(text.name, text.words, tuple(float(products[list(each)].sum()) for each in text.positions))
        for text in texts
    ]
    covered = sum(sum(text.values) for text in found)
    return Relevance("gradient × input", output.description, value, tuple(found), float(products.sum()) - covered)


def _erasure(
    model: EncoderOnly, texts: Sequence[InputWords], output: LabelOutput | FilledMask, value: float
) -> Relevance:
    """Return the relevance of each word by erasure. It is NaN for a word whose own state determines the output."""
    erased = [positions for text in texts for positions in text.positions]
    rows = [output.shortened(positions) for positions in erased]
    outputs = compute_outputs(model, rows, next(model.parameters()).device)
    differences = iter([value - output.without(*each) for each in zip(erased, outputs, strict=True)])
    found = [RelevantText(text.name, text.words, tuple(next(differences) for _ in text.words)) for text in texts]
    return Relevance("erasure", output.description, value, tuple(found), 0.0)
