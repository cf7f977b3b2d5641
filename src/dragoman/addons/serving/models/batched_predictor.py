"""`BatchedPredictor`: a model that predicts labels of texts of several requests together."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from dragoman.base.errors import ConfigError
from dragoman.data.labelled.examples import LabelledText
from dragoman.inference.abilities import Prediction, SupportsPredict
from dragoman.inference.prediction.examples import EncodedText
from dragoman.text.words import count_words


@runtime_checkable
class BatchedPredictor(SupportsPredict, Protocol):
    """A model that encodes texts, whose number of tokens is then known, before it predicts their labels."""

    @property
    def precision(self) -> str:
        """The number format of matrix products, such as float32."""
        ...

    def encode(self, texts: Sequence[Any], *, first: int = 1) -> Sequence[EncodedText]:
        """Return the inputs of the model for each text. Raises ConfigError for a text of the wrong form."""
        ...

    def predict_encoded(self, encoded: Sequence[EncodedText], *, batch_tokens: int = 4096) -> Sequence[Prediction]:
        """Return the prediction for each text that `encode` returned, in order."""
        ...


def batched(model: SupportsPredict) -> BatchedPredictor:
    """Return a model whose texts can be batched; one that only predicts is given texts as they are."""
    return model if isinstance(model, BatchedPredictor) else PlainPredictor(model)


class PlainText(EncodedText):
    """A text that the model encodes itself. Its words are counted as its tokens."""

    @property
    def tokens(self) -> int:
        """The number of words."""
        return sum(count_words(each) for each in self.example)


class PlainPredictor:
    """A `BatchedPredictor` of a model that only predicts. It reads texts and pairs of texts."""

    precision = "unknown"

    def __init__(self, model: SupportsPredict) -> None:
        self._model = model
        self.kind, self.task, self.labels, self.predict = model.kind, model.task, model.labels, model.predict

    def encode(self, texts: Sequence[Any], *, first: int = 1) -> Sequence[EncodedText]:
        """See `BatchedPredictor.encode`."""
        return [PlainText(text, _texts(text, number), ()) for number, text in enumerate(texts, first)]

    def predict_encoded(self, encoded: Sequence[EncodedText], *, batch_tokens: int = 4096) -> Sequence[Prediction]:
        """See `BatchedPredictor.predict_encoded`."""
        plain = [each.example[0] if len(each.example) == 1 else each.example for each in encoded]
        return self._model.predict(plain, batch_tokens=batch_tokens)


def _texts(text: Any, number: int) -> tuple[str, ...]:
    if isinstance(text, str):
        return (text,)
    if isinstance(text, LabelledText):
        return tuple(text.texts)
    raise ConfigError(f"text {number}: expected a text or a pair of texts, not {text!r:.80}")
