"""The conversion of examples to model inputs and of model outputs to predictions, for every kind of head."""

from collections.abc import Sequence
from typing import Any, Protocol

from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.heads.answering import AnswerFinder
from dragoman.inference.prediction.heads.classification import TextClassifier
from dragoman.inference.prediction.heads.filling import MaskFiller
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.parsing import ChartReader, TreeGenerator
from dragoman.inference.prediction.heads.regression import TextRegressor
from dragoman.inference.prediction.heads.tagging import WordTagger
from dragoman.models.heads.chart import ChartHeadConfig
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig
from dragoman.models.heads.union import HeadConfig
from dragoman.text.tokenizer import Tokenizer


class HeadReader(Protocol):
    """Converts the examples of one kind of head to inputs of the model, and its outputs to predictions."""

    def encode(self, examples: Sequence[Any]) -> list[list[ModelInput]]:
        """Return one or more inputs of each example."""
        ...

    def target(self, example: Any, inputs: Sequence[ModelInput], known: bool = True) -> list[Any]:
        """Return the target of each input of a labelled example.

        known: whether all labels must be labels of the model; if not, the target of an unknown label is `NO_LABEL`.
        Raises DataError for an invalid label.
        """
        ...

    def predict(self, example: Any, inputs: Sequence[ModelInput], outputs: Sequence[Any]) -> Prediction:
        """Return the prediction for an example, given the outputs of `compute_outputs` for each of its inputs."""
        ...


FILLS = 5
"""Default number of tokens that are predicted for each masked position."""


def reader_of(
    head: HeadConfig,
    tokenizer: Tokenizer,
    limit: int | None,
    threshold: float | None = None,
    fills: int = FILLS,
    sentence_language: str | None = None,
) -> HeadReader:
    """Return the reader of a head that predicts labels.

    limit: maximum number of tokens of an input; None: unlimited. threshold: as in `AnswerFinder`. fills: number of
    tokens per masked position. sentence_language: the language whose rules divide texts into sentences; None
    if they are not divided.
    """
    if isinstance(head, MaskedLanguageModelHeadConfig):
        return MaskFiller(tokenizer, limit, fills)
    if isinstance(head, ClassificationHeadConfig):
        return TextClassifier(tokenizer, head, limit, sentence_language)
    if isinstance(head, RegressionHeadConfig):
        return TextRegressor(tokenizer, head, limit, sentence_language)
    if isinstance(head, TaggingHeadConfig):
        return WordTagger(tokenizer, head, limit)
    if isinstance(head, TreeDecoderHeadConfig):
        return TreeGenerator(tokenizer, head, limit)
    if isinstance(head, ChartHeadConfig):
        return ChartReader(tokenizer, head, limit)
    assert isinstance(head, SpanHeadConfig), "a model without a head predicts no labels"
    return AnswerFinder(tokenizer, head, limit, threshold)
