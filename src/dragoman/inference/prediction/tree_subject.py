"""The prediction of a tree with its computation, at which `inspection` looks, and its continuation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.parsing import TreePrediction, span_labels
from dragoman.inference.prediction.heads.trees import generate_trees
from dragoman.inference.prediction.input_words import token_names
from dragoman.inference.subject import Decoding, Subject, check_not_blank, check_token_count, log_probabilities
from dragoman.models.attention_weights import END
from dragoman.models.heads.chart import ChartHead, ChartHeadConfig, ChartOutput
from dragoman.models.heads.tree_decoder import (
    TreeDecoderHead,
    TreeDecoderHeadConfig,
    TreeDecoderOutput,
    teacher_inputs,
)
from dragoman.models.heads.union import HeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence to parse, and its input to the model."""

    sentence: ParsedSentence
    row: ModelInput

    @property
    def words(self) -> str:
        """The words, separated by spaces."""
        return " ".join(self.sentence.words)

    @property
    def positions(self) -> list[int]:
        """The positions in the input of the words, and of the end."""
        return [*self.row.places, len(self.row.ids) - 1]

    def arguments(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the inputs of the model. Raises DataError for a blank sentence and for too many tokens."""
        check_not_blank(self.words, "sentence")
        check_token_count(len(self.row.ids))
        tokens = torch.tensor([self.row.ids], device=device)
        return tokens, torch.ones_like(tokens, dtype=torch.bool)


def tree_subject(
    model: EncoderOnly, tokenizer: Tokenizer, encoded: EncodedSentence, prediction: TreePrediction
) -> Subject:
    """Return the log-probability of a tree by a parser that generates it, or the score of a tree in a chart.

    Raises DataError for a sentence that is blank or too long, and for a tree without constituents in a chart.
    """
    if isinstance(model.head, ChartHead):
        return _chart_subject(model, tokenizer, encoded, prediction)
    assert isinstance(model.head, TreeDecoderHead), "other parsers have a chart"
    ids = tuple(model.head.symbols.encode(prediction.tree))
    return _decoded_subject(model, tokenizer, encoded, ids, prediction)


def _decoded_subject(
    model: EncoderOnly,
    tokenizer: Tokenizer,
    encoded: EncodedSentence,
    ids: tuple[int, ...],
    prediction: TreePrediction | None = None,
) -> Subject:
    """Return the log-probability of the symbols of a tree. prediction: the tree; None for a prefix of its symbols.

    Raises DataError for symbols with more words than the sentence.
    """
    head, device = model.head, next(model.parameters()).device
    assert isinstance(head, TreeDecoderHead), "other parsers have a chart"
    arguments, ends, names = encoded.arguments(device), encoded.positions, head.symbols
    count = list(accumulate((names.first_word <= each < names.first_opening for each in ids), initial=0))
    if count[-1] >= len(ends):
        raise DataError(f"the prefix has {count[-1]} words, but the sentence has {len(ends) - 1}: shorten the prefix")
    check_token_count(len(ids))
    labels = torch.tensor([*ids, EOS], device=device)
    places = torch.tensor([[ends[number] for number in count]], device=device)

    def logits(output: TreeDecoderOutput) -> Tensor:
        return output.logits(teacher_inputs(labels.unsqueeze(0), BOS, PAD), places)[0]

    return Subject(
        model,
        arguments,
        "log-probability of the tree",
        (*names.decode(ids), END),
        partial(log_probabilities, logits, labels),
        encoded.words,
        " ".join(names.decode(ids)) if prediction is None else str(prediction.tree.rooted()),
        tokens=token_names(tokenizer, encoded.row),
        source_ids=encoded.row.ids,
        target_ids=ids,
        decoding=Decoding(head, logits, names.decode),
        tree=None if prediction is None else prediction.tree,
    )


def _chart_subject(
    model: EncoderOnly, tokenizer: Tokenizer, encoded: EncodedSentence, prediction: TreePrediction
) -> Subject:
    """Return the score of the predicted tree: the sum of the scores of the labels of its spans."""
    device = next(model.parameters()).device
    arguments, spans, ends = encoded.arguments(device), span_labels(prediction.tree), encoded.positions
    assert isinstance(model.head, ChartHead), "the model has a chart"
    known = model.head.config.known_labels
    labels = torch.tensor([[known.index(each.label)] for each in spans], device=device)
    bounds = torch.tensor([[each.start, each.end] for each in spans], device=device)

    def select(output: ChartOutput) -> Tensor:
        if not spans:
            raise DataError("the predicted tree has no constituents, so that it has no score: choose another sentence")
        fenceposts = output.fenceposts(0, torch.tensor(ends, device=device))
        return output.spans(fenceposts, bounds[:, 0], bounds[:, 1]).gather(1, labels).squeeze(1)

    texts = encoded.sentence.words
    return Subject(
        model,
        arguments,
        "score of the tree",
        tuple(f"{each.label}: {' '.join(texts[each.start : each.end])}" for each in spans),
        select,
        encoded.words,
        str(prediction.tree.rooted()),
        tokens=token_names(tokenizer, encoded.row),
        tree=prediction.tree,
    )


@dataclass(frozen=True)
class TreeContinuation:
    """The best tree whose symbols begin with a prefix, as a `Continuation`. ids: its symbols."""

    prediction: TreePrediction
    ids: tuple[int, ...]

    @property
    def text(self) -> str:
        """The tree in brackets."""
        return str(self.prediction.tree.rooted())

    @property
    def score(self) -> float:
        """The log-probability of the tree, in nats."""
        return self.prediction.score

    log_probability = score


@dataclass(frozen=True)
class TreeSequence:
    """The symbols of a tree, such as `(S (NP DT`, as an `OutputSequence`. The best one is found by the parser's search.

    read: returns the prediction for the trees that `generate_trees` has found.
    """

    model: EncoderOnly
    tokenizer: Tokenizer
    head: TreeDecoderHeadConfig
    encoded: EncodedSentence
    read: Callable[[Sequence[Any]], Prediction]

    @property
    def size(self) -> int:
        """See `OutputSequence.size`."""
        return self.head.symbols.size

    def encode(self, prefix: str) -> tuple[int, ...]:
        """See `OutputSequence.encode`."""
        return tuple(self.head.symbols.parse(prefix))

    def complete(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """See `OutputSequence.complete`."""
        return ids

    def subject(self, ids: tuple[int, ...]) -> Subject:
        """See `OutputSequence.subject`."""
        return _decoded_subject(self.model, self.tokenizer, self.encoded, ids)

    def best(self, ids: tuple[int, ...], ended: bool) -> TreeContinuation:
        """See `OutputSequence.best`. Raises ConfigError for a prefix that no tree of the sentence has."""
        subject = self.subject(ids)
        with torch.inference_mode():
            output = self.model(*subject.arguments)
            prediction = self.read(generate_trees(output, [self.encoded.row], [ids]))
        assert isinstance(prediction, TreePrediction), "the model parses"
        if ended or (self.head.constrained and prediction.repairs):
            raise ConfigError(f"no tree of this sentence begins with {subject.target}: change the prefix")
        return TreeContinuation(prediction, tuple(self.head.symbols.encode(prediction.tree)))


def check_generates(head: HeadConfig) -> TreeDecoderHeadConfig:
    """Return a head that generates trees symbol by symbol. Raises ConfigError for another head."""
    if isinstance(head, TreeDecoderHeadConfig):
        return head
    if isinstance(head, ChartHeadConfig):
        raise ConfigError(
            "a chart parser scores all spans at once instead of generating symbols one after another; "
            "`dragoman inspect heads` shows the scores of the spans, and `dragoman inspect` the tree"
        )
    raise ConfigError(
        "a model that predicts labels generates no tokens one after another, so that no token follows a prefix; "
        "`dragoman predict` shows the probabilities of its labels"
    )
