"""Parsing: the constituency tree of a sentence, from a decoder of linearised trees or from the scores of a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.inference.prediction.heads.classification import label_number
from dragoman.inference.prediction.heads.inputs import ModelInput, encode_words
from dragoman.metrics.labels.brackets import COLLINS
from dragoman.models.heads.chart import CHAIN, ChartHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.native.chart import span_indices
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.trees.linearization import ANY_WORD, read_linearised
from dragoman.text.trees.symbols import TreeSymbols
from dragoman.text.trees.tree import Constituent, Tree, Word, escape_brackets

UNKNOWN_SPAN = -1
"""The label of a span whose label in the tree is not one of the model."""


@dataclass(frozen=True)
class SentenceInput(ModelInput):
    """The input for a sentence. words: its words as in a treebank, of which `places` are the first tokens."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class TreePrediction:
    """The predicted tree of a sentence.

    score: the log-probability of a generated tree, or the sum of the scores of the spans in a chart. repairs: number of
    symbols that were left out or added to make a tree of the generated ones.
    """

    tree: Tree
    score: float
    repairs: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        constituents = [each._asdict() for each in self.tree.constituents]
        return {
            "words": list(self.tree.texts),
            "tags": list(self.tree.tags),
            "tree": str(self.tree.rooted()),
            "constituents": constituents,
            "score": self.score,
            "repairs": self.repairs,
        }


class SentenceParser:
    """Base class of the readers of heads that parse. Encodes sentences."""

    def __init__(self, tokenizer: Tokenizer, head: TreeHead, limit: int | None) -> None:
        """limit: maximum number of tokens of a sentence."""
        self._tokenizer, self._limit = tokenizer, limit

    def encode(self, examples: Sequence[ParsedSentence]) -> list[list[ModelInput]]:
        """Return the input of each sentence. A sentence without words has none.

        The model reads brackets in words as -LRB- and -RRB-, as in the treebank from which it has learned.
        Raises DataError for a sentence that is longer than the limit, because its tree depends on all words, and
        ConfigError for an unknown tag.
        """
        sentences = [tuple(map(escape_brackets, example.words)) for example in examples]
        encoded = encode_words(self._tokenizer, sentences)
        inputs: list[list[ModelInput]] = []
        rows = zip(examples, sentences, encoded, strict=True)
        for number, (example, words, encoded_words) in enumerate(rows, 1):
            ids, places = [BOS, *self._tokenizer.tag_ids([example.tag] if example.tag else ())], []
            for tokens in encoded_words:
                places.append(len(ids))
                ids += tokens
            ids.append(EOS)
            if self._limit is not None and len(ids) > self._limit:
                raise DataError(
                    f"sentence {number}: {len(ids)} tokens, but the model reads at most {self._limit}: leave out the "
                    "sentence, or use a model with rotary positions and without data.length"
                )
            inputs.append([SentenceInput(tuple(ids), tuple(places), words=words)] if places else [])
        return inputs


class TreeGenerator(SentenceParser):
    """Converts sentences to inputs of a decoder of trees, and the generated symbols to trees."""

    def __init__(self, tokenizer: Tokenizer, head: TreeDecoderHeadConfig, limit: int | None) -> None:
        """limit: as in `SentenceParser`."""
        super().__init__(tokenizer, head, limit)
        self._symbols, self._punctuation, self._tagged = head.symbols, head.punctuation or {}, head.tagged

    def target(
        self, example: ParsedSentence, inputs: Sequence[ModelInput], known: bool = True
    ) -> list[NDArray[np.int64]]:
        """Return the symbols of the tree and EOS, each with a position in the input, (T, 2); see `generated_symbols`.

        See `HeadReader.target`.
        """
        assert example.tree is not None, "the examples have trees"
        if known:
            check_known(example.tree, self._symbols.labels, self._symbols.tags)
        if not inputs:
            return []
        return [np.stack(generated_symbols(self._symbols, example.tree, inputs[0]), 1)]

    def predict(self, example: ParsedSentence, inputs: Sequence[ModelInput], outputs: Sequence[Any]) -> TreePrediction:
        """Return the tree of a sentence. outputs: the ids that the decoder has generated, and their log-probability."""
        if not inputs:
            return TreePrediction(Tree(()), 0.0)
        ((ids, score),) = outputs
        symbols = [number for number in ids if number >= self._symbols.first_word]  # without special symbols
        read = read_linearised(self._symbols.decode(symbols), example.words)
        tree = read.tree
        if not self._tagged:
            tree = tree.with_tags(self._punctuation.get(word, (ANY_WORD,))[0] for word in words_of(inputs))
        return TreePrediction(tree, score, read.repairs + len(ids) - len(symbols))


@dataclass(frozen=True)
class ChartTree:
    """The tree with the largest sum of scores. spans: (N,) its labels, in the order of `span_indices`; see
    `best_spans`. tags: (n, T) the logits of the tags of each word. score: the sum of the scores.
    """

    spans: NDArray[np.int32]
    tags: NDArray[np.float32]
    score: float


class ChartReader(SentenceParser):
    """Converts sentences to inputs of a chart parser, and the spans of the chart to trees."""

    def __init__(self, tokenizer: Tokenizer, head: ChartHeadConfig, limit: int | None) -> None:
        """limit: as in `SentenceParser`."""
        super().__init__(tokenizer, head, limit)
        self._labels, self._tags, self._punctuation = head.known_labels, head.known_tags, head.punctuation or {}
        self._numbers = {label: number for number, label in enumerate(self._labels, 1)}
        self._tag_numbers = {tag: number for number, tag in enumerate(self._tags)}

    def target(
        self, example: ParsedSentence, inputs: Sequence[ModelInput], known: bool = True
    ) -> list[NDArray[np.int64]]:
        """Return one row for each word, with the position of its first token, 0 and its tag, one for the end of the
        sentence, with its position, 0 and 0, and one for each constituent, with its start, its end and its label.

        Labels are counted from 1. See `HeadReader.target`.
        """
        assert example.tree is not None, "the examples have trees"
        if not inputs:
            return []
        tags = [label_number(self._tag_numbers, tag, known) for tag in example.tree.tags]
        rows = [(place, 0, tag) for place, tag in zip(inputs[0].places, tags, strict=True)]
        rows.append((len(inputs[0].ids) - 1, 0, 0))
        for label, start, end in span_labels(example.tree):
            if known:
                rows.append((start, end, label_number(self._numbers, label, known)))
            else:
                rows.append((start, end, self._numbers.get(label, UNKNOWN_SPAN)))
        return [np.array(rows)]

    def predict(self, example: ParsedSentence, inputs: Sequence[ModelInput], outputs: Sequence[Any]) -> TreePrediction:
        """Return the tree of a sentence. outputs: its `ChartTree`."""
        if not inputs:
            return TreePrediction(Tree(()), 0.0)
        (found,) = outputs
        allowed = allowed_tags(words_of(inputs), self._tags, self._punctuation)
        numbers = np.where(allowed, found.tags, -np.inf).argmax(1)
        words = tuple(Word(self._tags[number], text) for number, text in zip(numbers, example.words, strict=True))
        starts, ends = span_indices(len(words))
        constituents = [
            Constituent(label, int(starts[place]), int(ends[place]))
            # longer spans with the same start come first, so that a constituent follows those that contain it
            for place in sorted(np.flatnonzero(found.spans > 0), key=lambda place: (starts[place], -ends[place]))
            for label in self._labels[found.spans[place] - 1].split(CHAIN)
        ]
        return TreePrediction(Tree(words, tuple(constituents)), found.score)


def words_of(inputs: Sequence[ModelInput]) -> tuple[str, ...]:
    """Return the words of a sentence as in a treebank. inputs: its input, a `SentenceInput`."""
    (row,) = inputs
    assert isinstance(row, SentenceInput), "the input comes from `SentenceParser.encode`"
    return row.words


def generated_symbols(symbols: TreeSymbols, tree: Tree, row: ModelInput) -> tuple[list[int], list[int]]:
    """Return the symbols of a tree and EOS, and the position in the input of what follows each of them.

    What follows is the first token of the next word, or EOS after the last word; a symbol of a word precedes it.
    """
    ends = [*row.places, len(row.ids) - 1]
    words = accumulate((isinstance(event, int) for event in tree.events()), initial=0)
    return [*symbols.encode(tree), EOS], [ends[number] for number in words]


def span_labels(tree: Tree) -> list[Constituent]:
    """Return the label of each span: of constituents with the same words, all labels joined by `CHAIN`."""
    groups = groupby(tree.constituents, key=lambda each: (each.start, each.end))
    return [Constituent(CHAIN.join(each.label for each in group), *span) for span, group in groups]


def allowed_tags(
    words: Sequence[str], tags: Sequence[str], punctuation: Mapping[str, Sequence[str]]
) -> NDArray[np.bool_]:
    """Return whether each word may have each tag, (words, tags); every word has at least one.

    punctuation: as in `TreeHead`.
    """
    ordinary = np.array([tag not in COLLINS.deleted for tag in tags])
    rows = {word: np.isin(tags, list(own)) for word, own in punctuation.items()}
    chosen = np.array([rows.get(word, ordinary) for word in words]).reshape(len(words), len(tags))
    return chosen | ~chosen.any(1, keepdims=True)


def check_known(tree: Tree, labels: Sequence[str], tags: Sequence[str] | None) -> None:
    """Raise DataError if a tree contains another label or tag."""
    unknown = sorted({each.label for each in tree.constituents} - set(labels))
    unknown += sorted(set(tree.tags) - set(tree.tags if tags is None else tags))
    if unknown:
        raise DataError(
            f"the tree {tree!s:.80} contains {unknown[0]!r}, which is not in model.head.labels or model.head.tags: "
            "add it, or remove these settings"
        )
