"""What a loaded model can do: one protocol for each ability that the record of its kind names.

A caller asks the record, or the protocol, never for the class of a model. So a kind from outside the package needs only
the methods of the abilities that its record names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dragoman.base.progress import Progress
from dragoman.base.settings.load import Overrides
from dragoman.checkpoint.meta import Meta
from dragoman.data.graphs import Graph
from dragoman.engines.engine import Engine
from dragoman.inference.generation.writer import Piece, Prompt, ScoredToken
from dragoman.inference.subject import NO_SETTINGS, OutputSequence, Subject, SubjectSettings
from dragoman.inference.translation.alignment import Aligner
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.line_division import LineDivision
from dragoman.inference.translation.request import Request, Requests, SourceTags
from dragoman.inference.translation.result import Choice, PairScore, Translation
from dragoman.inference.translation.training_texts import TrainingTexts
from dragoman.metrics.labels.report import Report
from dragoman.metrics.text_score import TextScore
from dragoman.models.attention_weights import AttentionChoice
from dragoman.models.kinds.registry import ModelKind
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers


@runtime_checkable
class LoadedObject(Protocol):
    """What `dragoman.load` returns: an object with the record of its kind."""

    @property
    def kind(self) -> ModelKind:
        """The record of the kind of model."""
        ...


@runtime_checkable
class SupportsTranslate(LoadedObject, Protocol):
    """Translates texts."""

    def request(self, *arguments: Any, **settings: Any) -> Any:
        """Return the settings of a translation, such as `to`, `tags` and `beam`; those of the model are the defaults.

        The source tags that they result in are its attribute `tags`.
        """
        ...

    def translate(self, texts: Sequence[str], *, batch_size: int = 64, beam: int | None = None) -> list[str]:
        """Return one translation per text, in order."""
        ...

    def translate_nbest(
        self, texts: Sequence[str], requests: Any = None, batch_size: int = 64
    ) -> Sequence[Sequence[Any]]:
        """Return the hypotheses of each text, the best first, each with `text` and `score`."""
        ...

    def target_language(self, tags: Sequence[str] = ()) -> str | None:
        """Return the target language of a request with these source tags, or None if it is unknown."""
        ...


@runtime_checkable
class SupportsLines(SupportsTranslate, Protocol):
    """Translates the lines of files, the sentences of documents and the texts of a server; see `Translator`.

    A translator from outside the package that is a `Translator` with an engine of its own has all of this.
    """

    warn_unfinished: bool
    """Whether to warn of unfinished translations."""

    @property
    def meta(self) -> Meta:
        """The languages of the model, and what is known of its training."""
        ...

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers, with which the lengths of texts are compared."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine: its precision and the maximum lengths of texts."""
        ...

    @property
    def codec(self) -> Codec:
        """Converts texts and requests to the rows of the engine."""
        ...

    @property
    def division(self) -> LineDivision | None:
        """Divides lines of several sentences; None for a model that translates them as a whole."""
        ...

    @property
    def training_texts(self) -> TrainingTexts:
        """The texts of the training, with which inputs are compared."""
        ...

    @property
    def source_tags(self) -> SourceTags:
        """The tags of source texts and the target languages that can be chosen."""
        ...

    def translate_window(
        self,
        texts: Sequence[str],
        requests: Requests | None = None,
        batch_size: int = 64,
        *,
        first: int = 1,
        progress: Progress | None = None,
        choice: Choice | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the hypotheses of each text, in order, as `Translator.translate_window` does."""
        ...

    def fits(self, text: str, request: Request | None = None) -> bool:
        """Return whether a source text is within the model's maximum length."""
        ...

    def aligner_of(self, tags: Sequence[str] = (), attention: AttentionChoice | None = None) -> Aligner:
        """Return an object that aligns the words of texts and their translations."""
        ...


@runtime_checkable
class SupportsGenerate(LoadedObject, Protocol):
    """Continues texts."""

    def request(
        self,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        seed: int = 1,
        samples: int = 1,
        max_tokens: int = 256,
    ) -> Any:
        """Return the settings of a continuation; those of the model are the defaults."""
        ...

    def generate(
        self, prompts: Sequence[str], request: Any = None, *, batch_size: int = 32, first: int = 1
    ) -> list[str]:
        """Return the continuations of all prompts, without the prompts."""
        ...

    def stream(self, prompt: str, request: Any = None) -> Iterable[str]:
        """Yield the continuation of one prompt in pieces."""
        ...


@runtime_checkable
class SupportsPieces(SupportsGenerate, Protocol):
    """Continues texts token by token, as the server needs it; see `LanguageModel`."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of prompts and continuations."""
        ...

    @property
    def window(self) -> int | None:
        """The maximum number of tokens of context; None: unlimited."""
        ...

    def pieces(self, prompts: Sequence[Prompt], request: Any = None, *, best: int = 0) -> Iterator[Piece]:
        """Yield a piece per token of the continuations, as `LanguageModel.pieces` does."""
        ...

    def token_scores(self, ids: Sequence[int], *, best: int = 0) -> list[ScoredToken]:
        """Return the log-probability of each token of a text given the preceding ones."""
        ...


@runtime_checkable
class SupportsScore(LoadedObject, Protocol):
    """Computes log-probabilities of texts."""

    def score(self, texts: Sequence[str], *, stride: int | None = None, batch_size: int = 64) -> list[TextScore]:
        """Return the score of each text, in order. stride: None, or as in `LanguageModel.score`."""
        ...


@runtime_checkable
class SupportsScorePairs(LoadedObject, Protocol):
    """Computes log-probabilities of translations. It is the form of `score` of a kind with a source and a target."""

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> Sequence[PairScore]:
        """Return the log-probability of each target given its source, in order."""
        ...


class Prediction(Protocol):
    """The prediction for one example."""

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        ...


@runtime_checkable
class SupportsPredict(LoadedObject, Protocol):
    """Predicts labels of texts."""

    @property
    def task(self) -> str:
        """What is predicted, such as `classification`: the name of the task in lists and reports."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """The names of the classes; empty for a model without classes."""
        ...

    def predict(self, texts: Sequence[Any], *, batch_tokens: int = 4096, first: int = 1) -> Sequence[Prediction]:
        """Return the prediction for each text, in order.

        batch_tokens: maximum number of tokens that are computed at once. first: number of the first text in messages.
        """
        ...


@runtime_checkable
class SupportsClassifyNodes(LoadedObject, Protocol):
    """Classifies the nodes of a graph."""

    def graph(self, nodes: Any = None, edges: Any = None) -> Graph:
        """Read a graph from the files of its nodes and edges; None: the graph that the model was trained on."""
        ...

    def predict(self, graph: Graph) -> Sequence[Prediction]:
        """Return the prediction for each node, in order."""
        ...


@runtime_checkable
class SupportsEvaluate(LoadedObject, Protocol):
    """Compares its predictions with the labels of a file."""

    @property
    def task(self) -> str:
        """What is predicted; only models with the same task are compared."""
        ...

    def evaluate_file(self, test: str | Path, settings: Overrides = ()) -> Report:
        """Return the metrics of the predictions for the examples of a file. settings: of the corpus."""
        ...


@runtime_checkable
class SupportsFiles(SupportsPredict, Protocol):
    """Predicts labels of examples that it reads from files itself, and names the formats of its predictions."""

    @property
    def formats(self) -> Sequence[str]:
        """The formats of `dragoman predict` that fit the predictions; the first is the default."""
        ...

    def read_examples(self, source: str | Path, settings: Overrides = (), labelled: bool = False) -> Sequence[Any]:
        """Return the examples of a file. labelled: whether they must have labels."""
        ...


@runtime_checkable
class SupportsVectors(SupportsPredict, Protocol):
    """Represents texts by vectors."""

    def vectors(self, texts: Sequence[Any], *, batch_tokens: int = 4096, first: int = 1) -> NDArray[np.float32]:
        """Return the vector of each text, (N, d) float32, scaled to length 1. The arguments are those of `predict`."""
        ...


@runtime_checkable
class SupportsAlign(LoadedObject, Protocol):
    """Aligns the words of sentence pairs."""

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int = 64) -> list[Alignment]:
        """Return the links (i, j) of the words of each pair, separated by `str.split`."""
        ...


@runtime_checkable
class SupportsInspect(LoadedObject, Protocol):
    """Offers its computation to `dragoman.inspect` and to the other questions in `inspection`."""

    @property
    def model(self) -> Any:
        """The module that computes the output, in evaluation mode, whose heads can be switched off."""
        ...

    def subject(self, text: Any, settings: SubjectSettings = NO_SETTINGS) -> Subject:
        """Return the output of the model for a text, with its computation."""
        ...


@runtime_checkable
class SupportsSequence(SupportsInspect, Protocol):
    """Generates its output token by token, so that it can continue a prefix of it."""

    def sequence(self, text: Any, settings: SubjectSettings = NO_SETTINGS) -> OutputSequence:
        """Return the output of the model for a text as a sequence of tokens."""
        ...


PROTOCOLS: Mapping[str, type] = {
    "translate": SupportsTranslate,
    "generate": SupportsGenerate,
    "score": SupportsScore,
    "predict": SupportsPredict,
    "classify_nodes": SupportsClassifyNodes,
    "align": SupportsAlign,
    "inspect": SupportsInspect,
}
"""The protocol of the object for each ability. `score` of a translation model is that of `SupportsScorePairs`."""


def missing_members(model: object, protocol: type) -> list[str]:
    """Return the names of the methods and properties of a protocol that an object lacks."""
    members = {name for base in protocol.__mro__[:-1] for name in vars(base) if not name.startswith("_")}
    known = {*dir(type(model)), *getattr(model, "__dict__", ())}
    return sorted(members - known)
