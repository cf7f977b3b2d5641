"""The conversion of examples to model inputs and of model outputs to predictions, for every kind of head."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

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


class ReaderSettings(NamedTuple):
    """The settings of a reader beside its head.

    limit: maximum number of tokens of an input; None: unlimited. threshold: as in `AnswerFinder`. fills: number of
    tokens per masked position. sentence_language: the language whose rules divide texts into sentences; None if they
    are not divided. reads_factors: as in `WordTagger`.
    """

    limit: int | None
    threshold: float | None = None
    fills: int = FILLS
    sentence_language: str | None = None
    reads_factors: bool = False


MakeReader = Callable[[Tokenizer, Any, ReaderSettings], HeadReader]

READERS: dict[type, MakeReader] = {
    MaskedLanguageModelHeadConfig: lambda tokenizer, head, given: MaskFiller(tokenizer, given.limit, given.fills),
    ClassificationHeadConfig: lambda tokenizer, head, given: TextClassifier(
        tokenizer, head, given.limit, given.sentence_language
    ),
    RegressionHeadConfig: lambda tokenizer, head, given: TextRegressor(
        tokenizer, head, given.limit, given.sentence_language
    ),
    TaggingHeadConfig: lambda tokenizer, head, given: WordTagger(tokenizer, head, given.limit, given.reads_factors),
    TreeDecoderHeadConfig: lambda tokenizer, head, given: TreeGenerator(tokenizer, head, given.limit),
    ChartHeadConfig: lambda tokenizer, head, given: ChartReader(tokenizer, head, given.limit),
    SpanHeadConfig: lambda tokenizer, head, given: AnswerFinder(tokenizer, head, given.limit, given.threshold),
}
"""The functions that make the readers of heads, by the class of the head's config. Another head adds its own."""


def reader_of(head: HeadConfig, tokenizer: Tokenizer, settings: ReaderSettings) -> HeadReader:
    """Return the reader of a head that predicts labels."""
    return READERS[type(head)](tokenizer, head, settings)
