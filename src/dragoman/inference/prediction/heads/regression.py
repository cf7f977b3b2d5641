"""Regression: a number for each text or pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.data.labelled.examples import LabelledText
from dragoman.inference.prediction.heads.classification import encode_documents, encode_texts
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.models.heads.texts import RegressionHeadConfig
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class ValuePrediction:
    """The predicted number of a text."""

    value: float

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        return {"value": self.value}


class TextRegressor:
    """Converts texts to inputs of a regression model, and its outputs to predictions."""

    def __init__(
        self, tokenizer: Tokenizer, head: RegressionHeadConfig, limit: int | None, sentence_language: str | None = None
    ) -> None:
        """limit: maximum number of tokens of an input; longer texts are cut. sentence_language: as in `reader_of`."""
        self._tokenizer, self._limit, self._separate = tokenizer, limit, head.encodes_separately
        self._sentence_language = sentence_language
        self._range = head.range

    def encode(self, examples: Sequence[LabelledText]) -> list[list[ModelInput]]:
        """Return the inputs of each example, which is one."""
        if self._sentence_language is not None:
            return encode_documents(self._tokenizer, examples, self._limit, self._sentence_language)
        return encode_texts(self._tokenizer, examples, self._limit, self._separate)

    def target(self, example: LabelledText, inputs: Sequence[ModelInput], known: bool = True) -> list[float]:
        """Return the label for each input. Raises DataError for a label that is not a number or outside the range."""
        value = label_value(example)
        if self._range is not None and not self._range[0] <= value <= self._range[1]:
            low, high = self._range
            raise DataError(
                f"the label {value:g} is not in model.head.range, which is {low:g} to {high:g}: correct the label, or "
                "widen the range"
            )
        return [value]

    def predict(
        self, example: LabelledText, inputs: Sequence[ModelInput], outputs: Sequence[NDArray[np.float32]]
    ) -> ValuePrediction:
        """Return the prediction for an example. outputs: the number () that the model computes for its input."""
        value = float(outputs[0])
        return ValuePrediction(value if self._range is None else min(max(value, self._range[0]), self._range[1]))


def label_value(example: LabelledText) -> float:
    """Return the label as a number. Raises DataError if it is not a finite number."""
    try:
        value = float(example.label or "")
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise DataError(f"the label {example.label!r} is not a number: correct it, or use task.kind=classification")
    return value
