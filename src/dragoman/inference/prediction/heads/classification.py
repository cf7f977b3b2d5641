"""Classification of texts and of pairs of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.labelled.examples import LabelledText
from dragoman.inference.prediction.heads.inputs import ModelInput, join_sentences, join_texts, separate_texts
from dragoman.models.heads.texts import ClassificationHeadConfig
from dragoman.text.sentences.splitter import Splitter
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class ClassPrediction:
    """The predicted class of a text. probabilities: the probability of each class, by name."""

    label: str
    probabilities: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        return {"label": self.label, "probabilities": dict(self.probabilities)}


class TextClassifier:
    """Converts texts to inputs of a classification model, and its outputs to predictions."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        head: ClassificationHeadConfig,
        limit: int | None,
        sentence_language: str | None = None,
    ) -> None:
        """limit: maximum number of tokens of an input; longer texts are cut. sentence_language: as in `reader_of`."""
        self._tokenizer, self._limit, self._separate = tokenizer, limit, head.encodes_separately
        self._sentence_language = sentence_language
        self.labels = head.labels or ()
        self._numbers = {label: number for number, label in enumerate(self.labels)}

    def encode(self, examples: Sequence[LabelledText]) -> list[list[ModelInput]]:
        """Return the inputs of each example, which is one."""
        if self._sentence_language is not None:
            return encode_documents(self._tokenizer, examples, self._limit, self._sentence_language)
        return encode_texts(self._tokenizer, examples, self._limit, self._separate)

    def target(self, example: LabelledText, inputs: Sequence[ModelInput], known: bool = True) -> list[int]:
        """Return the number of the label for each input. See `HeadReader.target`."""
        assert example.label is not None, "the examples have labels"
        return [label_number(self._numbers, example.label, known)]

    def predict(
        self, example: LabelledText, inputs: Sequence[ModelInput], outputs: Sequence[NDArray[np.float32]]
    ) -> ClassPrediction:
        """Return the prediction for an example. outputs: logits (C,) of its input."""
        probabilities = softmax(outputs[0])
        named = dict(zip(self.labels, map(float, probabilities), strict=True))
        return ClassPrediction(self.labels[int(probabilities.argmax())], named)


def label_number(numbers: Mapping[str, int], label: str, known: bool) -> int:
    """Return the number of a label.

    known: whether the label must be one of the model's; if not, the number of an unknown label is `NO_LABEL`. Raises
    DataError for an unknown label.
    """
    if known and label not in numbers:
        raise DataError(
            f"the label {label!r} is not one of {', '.join(map(repr, numbers))}: correct it, or list it in "
            "model.head.labels"
        )
    return numbers.get(label, NO_LABEL)


def encode_texts(
    tokenizer: Tokenizer, examples: Sequence[LabelledText], limit: int | None, separate: bool = False
) -> list[list[ModelInput]]:
    """Return the input of each example's texts. separate: whether the texts of a pair are encoded separately."""
    texts = iter(tokenizer.encode_batch([text for example in examples for text in example.texts]))
    arrange = separate_texts if separate else join_texts
    return [[arrange([next(texts) for _ in example.texts], limit)] for example in examples]


def encode_documents(
    tokenizer: Tokenizer, examples: Sequence[LabelledText], limit: int | None, language: str
) -> list[list[ModelInput]]:
    """Return the input of each example, one text, which is divided into sentences. language: of the rules.

    Raises ConfigError for a pair of texts.
    """
    if any(len(example.texts) > 1 for example in examples):
        raise ConfigError(
            "a hierarchical encoder reads one document, but an example is a pair of texts: select one text, as in "
            "columns.text=1, or choose another model.encoder"
        )
    documents = [divide_into_sentences(example.texts[0], language) for example in examples]
    ids = iter(tokenizer.encode_batch([sentence for sentences in documents for sentence in sentences]))
    return [[join_sentences([next(ids) for _ in sentences], limit)] for sentences in documents]


def divide_into_sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, which together contain all its characters. language: of the rules."""
    begins = [begin for begin, _ in Splitter(language).sentences(text)][1:]
    return [text[start:end] for start, end in pairwise([0, *begins, len(text)])]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the probabilities along the last axis."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)  # type: ignore[no-any-return]
