"""Regression: a number for each text or pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.data.labelled.examples import LabelledText
from dragoman.models.heads import RegressionHeadConfig
from dragoman.prediction.classification import encode_texts
from dragoman.prediction.inputs import ModelInput
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

    def __init__(self, tokenizer: Tokenizer, head: RegressionHeadConfig, limit: int | None) -> None:
        """limit: maximum number of tokens of an input; longer texts are cut."""
        self._tokenizer, self._limit = tokenizer, limit

    def encode(self, examples: Sequence[LabelledText]) -> list[list[ModelInput]]:
        """Return the inputs of each example, which is one."""
        return encode_texts(self._tokenizer, examples, self._limit)

    def target(self, example: LabelledText, inputs: Sequence[ModelInput], known: bool = True) -> list[float]:
        """Return the label for each input. Raises DataError for a label that is not a number."""
        return [label_value(example)]

    def predict(
        self, example: LabelledText, inputs: Sequence[ModelInput], outputs: Sequence[NDArray[np.float32]]
    ) -> ValuePrediction:
        """Return the prediction for an example. outputs: the number () that the model computes for its input."""
        return ValuePrediction(float(outputs[0]))


def label_value(example: LabelledText) -> float:
    """Return the label as a number. Raises DataError if it is not a finite number."""
    try:
        value = float(example.label or "")
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise DataError(f"the label {example.label!r} is not a number: correct it, or use task.kind=classification")
    return value
