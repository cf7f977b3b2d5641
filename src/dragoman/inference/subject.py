"""`Subject`: a text and the output of a model for it, with the computation, at which `inspection` looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.graphs import Graph
from dragoman.models.attention_weights import END
from dragoman.models.interface import Output
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.trees.tree import Tree

MAX_TOKENS = 512
"""Maximum number of tokens per side of a subject.

Weights and pictures grow quadratically with it. In longer texts, the cells of pictures would be smaller than 4 pixels.
"""


@dataclass(frozen=True)
class SubjectSettings:
    """The choices that complete a text. All are optional.

    target: the translation to look at, or its token ids without special symbols; None for the model's own. to: as in
    `Translator.request`. tags: as there; for a parser, the tag of a treebank. word: for a tagger, the number of the
    word, counted from 1, whose tag is explained (default: the first word of the first span). mask: for a masked
    language model, the number of the `<mask>` whose most probable token is explained (default: 1). graph: the graph
    that contains a node; None for that of the model's training.
    """

    target: str | tuple[int, ...] | None = None
    to: str | None = None
    tags: tuple[str, ...] = ()
    word: int | None = None
    mask: int | None = None
    graph: Graph | None = None


NO_SETTINGS = SubjectSettings()
"""The model's own output for a text."""


class Decoding(NamedTuple):
    """The decoder of a subject.

    owner: the module of which it is the attribute `decoder`: the model, or its head. logits: returns the logits
    (T + 1, V) at all positions of the target from what the model returns. pieces: returns the names of token ids.
    """

    owner: Any
    logits: Callable[[Any], Tensor]
    pieces: Callable[[Sequence[int]], Sequence[str]]

    @property
    def module(self) -> Any:
        """The decoder, or None for a model that has no module of its own for it."""
        return getattr(self.owner, "decoder", None)


@dataclass(frozen=True)
class InputWords:
    """The words of one text of an input. positions: the positions of each word's tokens in the input."""

    name: str
    words: tuple[str, ...]
    positions: tuple[tuple[int, ...], ...]


class WordOutput(NamedTuple):
    """A number that a model computes from the words of its input, such as the logit of the predicted label.

    description: such as "logit of 'positive'". select: returns the number from what the model returns, differentiable.
    words: the words of each text. without: returns the number for the input without the tokens at some positions, for
    each of these sets of positions; NaN if the number belongs to one of these tokens. lengths: the numbers of tokens of
    the rows in which the model encodes the input; one row, unless it encodes the texts of a pair separately.
    """

    description: str
    select: Callable[[Any], Tensor]
    words: tuple[InputWords, ...]
    without: Callable[[Sequence[Sequence[int]]], Sequence[float]]
    lengths: tuple[int, ...]


class GraphNode(NamedTuple):
    """A node whose class is predicted. number: its number in the graph. labels: the names of the classes."""

    graph: Graph
    number: int
    labels: Sequence[str]


@dataclass(frozen=True)
class Subject:
    """A text, and the output of a model for it.

    model: a module in evaluation mode. arguments: its inputs for the text, one row each. output: describes the output,
    such as "log-probability of the translation". terms: the labels of the N terms whose sum is the output: the
    predicted tokens and the end symbol, or a single label. select: returns the terms (N,) of what the model returns,
    differentiable. source, target: the text, and the text or label that is predicted; source is None for a language
    model.

    tokens: the names of the tokens that the encoder reads; empty for a model without an encoder. source_ids,
    target_ids: the tokens of a model with a decoder, without special symbols except tags. decoding: its decoder; None
    for a model without one.

    own: returns the model's own translation or label, computed again, for example while heads are off; it returns None
    for a language model. words: the number that the words explain, for a model that predicts labels. fills: for each
    `<mask>` of the text, the most probable tokens with their probabilities, the best first. tree: the predicted tree of
    a parser. node: the node of a graph, for a model that classifies nodes.
    """

    model: Any
    arguments: tuple[Tensor, ...]
    output: str
    terms: tuple[str, ...]
    select: Callable[[Any], Tensor]
    source: str | None
    target: str
    tokens: tuple[str, ...] = ()
    source_ids: Sequence[Any] = ()
    target_ids: tuple[int, ...] = ()
    decoding: Decoding | None = None
    own: Callable[[], str | None] = field(default=lambda: None)
    words: WordOutput | None = None
    fills: tuple[tuple[tuple[str, float], ...], ...] = ()
    tree: Tree | None = None
    node: GraphNode | None = None

    def compute(self) -> Tensor:
        """Return the terms (N,) of the output, differentiable."""
        return self.select(self.model(*self.arguments))

    def values(self) -> NDArray[np.float64]:
        """Return the terms (N,) of the output."""
        with torch.inference_mode():
            return self.compute().double().cpu().numpy()


class Continuation(Protocol):
    """The best output that begins with a prefix."""

    @property
    def text(self) -> str:
        """The output as text."""
        ...

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens of the output, without the end symbol."""
        ...

    @property
    def log_probability(self) -> float:
        """The log-probability of the output, in nats."""
        ...

    @property
    def score(self) -> float:
        """The score by which the search compares outputs."""
        ...


class OutputSequence(Protocol):
    """The output of a model for a text, which the model generates token by token."""

    @property
    def size(self) -> int:
        """The number of the model's output tokens."""
        ...

    def encode(self, prefix: str) -> tuple[int, ...]:
        """Return the tokens of a prefix of the output."""
        ...

    def complete(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tokens that the decoder reads before the next one, given those of a prefix."""
        ...

    def subject(self, ids: tuple[int, ...]) -> Subject:
        """Return the subject whose target consists of these tokens, as `complete` returns them."""
        ...

    def best(self, ids: tuple[int, ...], ended: bool) -> Continuation:
        """Return the best output that begins with these tokens. ended: whether the end symbol follows them.

        Raises ConfigError for an end symbol if the score of such an output is not defined.
        """
        ...


def target_subject(
    model: Any,
    inputs: tuple[Tensor, ...],
    ids: tuple[int, ...],
    pieces: Callable[[Sequence[int]], Sequence[str]],
    **texts: Any,
) -> Subject:
    """Return the log-probability of a target by a model with a decoder.

    inputs: those of the encoder, one row. ids: the tokens of the target. pieces: returns the names of token ids. texts:
    further fields of `Subject`. Raises DataError for too many tokens.
    """
    check_token_count(len(ids))
    device = next(model.parameters()).device
    read = torch.tensor([[BOS, *ids]], device=device)

    def logits(outputs: Output) -> Tensor:
        return outputs.logits()[0]

    return Subject(
        model,
        (*inputs, read),
        terms=(*pieces(ids), END),
        select=partial(log_probabilities, logits, torch.tensor([*ids, EOS], device=device)),
        target_ids=ids,
        decoding=Decoding(model, logits, pieces),
        **texts,
    )


def log_probabilities(logits: Callable[[Any], Tensor], labels: Tensor, outputs: Any) -> Tensor:
    """Return the log-probabilities (N,) of labels (N,) at all positions. logits: as in `Decoding`."""
    return logits(outputs).log_softmax(-1).gather(1, labels.unsqueeze(1)).squeeze(1)


def check_prefix(ids: Sequence[int], size: int) -> None:
    """Raise ConfigError for an id that is not that of a token. size: the number of tokens."""
    if invalid := [each for each in ids if each in (PAD, BOS, EOS) or not 0 <= each < size]:
        raise ConfigError(
            f"the prefix contains the id {invalid[0]}, which is not that of a token: pass ids below {size}, "
            f"and the end symbol, {EOS}, only at the end"
        )


def check_not_blank(text: str, name: str) -> None:
    """Raise DataError if the text is blank. name: the name of the text in the message."""
    if not text.strip():
        raise DataError(f"the {name} is blank: enter a text to inspect")


def check_token_count(count: int) -> None:
    """Raise DataError if a text has more tokens than a picture can show."""
    if count > MAX_TOKENS:
        raise DataError(
            f"the text has {count} tokens, but pictures show at most {MAX_TOKENS} per side: inspect a part of the text"
        )


def check_one_text(text: Any) -> str:
    """Return the text of a model that reads one text. Raises ConfigError for a pair of texts."""
    if not isinstance(text, str):
        raise ConfigError("this model reads one text, not a pair of texts: pass a string")
    return text
