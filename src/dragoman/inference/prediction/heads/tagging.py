"""Tagging: one label for each word of a sentence."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, repeat
from typing import Any
from urllib.parse import quote

import numpy as np

from dragoman.base.errors import DataError
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.inference.prediction.heads.chains import join_inputs
from dragoman.inference.prediction.heads.classification import label_number, softmax
from dragoman.inference.prediction.heads.inputs import ModelInput, encode_words, factored_inputs, word_inputs
from dragoman.metrics.labels.spans import Scheme, find_spans, has_span_tags
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_factors import NO_FACTOR, count_factors, factor_numbers
from dragoman.text.words import split_units


@dataclass(frozen=True)
class TaggedSpan:
    """A span of the text, such as a name. start, end: its characters, counted from 0, `end` exclusive."""

    type: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class TagPrediction:
    """The predicted tag of each word.

    probabilities: the probability of each of these tags; with transitions, it is the sum over all sequences that have
    this tag at this word. text: the text that contains the words. offsets: first character of each word in the text,
    and the character after its last. spans: the spans that the tags mark, such as B-PER I-PER; empty if the tags mark
    no spans.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    text: str
    offsets: tuple[tuple[int, int], ...]

    @property
    def spans(self) -> tuple[TaggedSpan, ...]:
        """The spans that the tags mark, in order."""
        if not has_span_tags(self.tags):
            return ()
        found = []
        for span in find_spans(self.tags, span_scheme(self.tags), "conlleval"):
            start, end = self.offsets[span.start][0], self.offsets[span.end - 1][1]
            found.append(TaggedSpan(span.type, start, end, self.text[start:end]))
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        return {
            "words": list(self.words),
            "tags": list(self.tags),
            "probabilities": list(self.probabilities),
            "spans": [asdict(span) for span in self.spans],
        }


def feature_symbol(column: int, value: str) -> str:
    """Return the tag of the vocabulary that stands for a feature of a word. column: number of the column, from 0."""
    return f"feature{column}:{quote(value)}"  # tags contain no blanks, commas or angle brackets


def encode_tagged(tokenizer: Tokenizer, sentences: Sequence[TaggedSentence], features: int) -> list[list[list[int]]]:
    """Return the ids of each word of each sentence: one symbol for each of its features, and its tokens.

    A value that does not occur in the training data is UNK. Raises DataError if a sentence has another number of
    features.
    """
    numbers = dict(zip(tokenizer.tags, tokenizer.tag_ids(tokenizer.tags), strict=True))
    encoded = encode_words(tokenizer, [sentence.words for sentence in sentences])
    for sentence, words in zip(sentences, encoded, strict=True):
        check_columns(sentence, features)
        for column, values in reversed(list(enumerate(sentence.features))):
            for ids, value in zip(words, values, strict=True):
                ids.insert(0, numbers.get(feature_symbol(column, value), UNK))
    return encoded


def check_columns(sentence: TaggedSentence, features: int) -> None:
    """Raise DataError if a sentence has another number of further columns."""
    if len(sentence.features) != features:
        raise DataError(
            f"the model reads {features} further columns of each word, but the sentence has "
            f"{len(sentence.features)}: set `features` to the numbers of these columns, as in features=[2]"
        )


def span_scheme(tags: Sequence[str]) -> Scheme:
    """Return the scheme of tags that mark spans. IOB1 and IOB2 mark the same spans in the convention of conlleval."""
    prefixes = {tag[:2] for tag in tags}
    if prefixes & {"E-", "S-"}:
        return "IOBES"
    return "BILOU" if prefixes & {"L-", "U-"} else "IOB2"


def split_words(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each word of a text: words, numbers, and single other characters."""
    return [(start, end) for start, end in split_units(text) if not text[start:end].isspace()]


def tagged_sentence(text: str) -> tuple[TaggedSentence, tuple[tuple[int, int], ...]]:
    """Return the words of a text as a sentence, and their offsets."""
    offsets = tuple(split_words(text))
    return TaggedSentence(tuple(text[start:end] for start, end in offsets)), offsets


class WordTagger:
    """Converts sentences to inputs of a tagging model, and its outputs to predictions."""

    def __init__(
        self, tokenizer: Tokenizer, head: TaggingHeadConfig, limit: int | None, reads_factors: bool = False
    ) -> None:
        """limit: maximum number of tokens of an input; longer sentences are divided into several inputs.

        reads_factors: whether the model reads one token for each word, with the factors of the word, of which the
        further columns are a part. Otherwise, it reads all tokens, without factors.
        """
        self._tokenizer, self._limit, self._reads_factors = tokenizer, limit, reads_factors
        self.labels, self._features = head.labels or (), head.features or 0
        self._transitions = head.has_transitions
        self._numbers = {label: number for number, label in enumerate(self.labels)}

    def encode(self, examples: Sequence[TaggedSentence]) -> list[list[ModelInput]]:
        """Return the inputs of each sentence."""
        if not self._reads_factors:
            words = encode_tagged(self._tokenizer, examples, self._features)
            return [list(word_inputs(each, self._limit, self._features)) for each in words]
        words = encode_words(self._tokenizer, [example.words for example in examples])
        nothing = (NO_FACTOR,) * count_factors(self._features)
        return [
            list(factored_inputs(ids, self._factors(example), nothing, self._limit))
            for example, ids in zip(examples, words, strict=True)
        ]

    def _factors(self, sentence: TaggedSentence) -> list[tuple[int, ...]]:
        """Return the factors of each word of a sentence. Raises DataError if it has another number of columns."""
        check_columns(sentence, self._features)
        columns = zip(*sentence.features, strict=True) if sentence.features else repeat(())
        return [factor_numbers(word, values) for word, values in zip(sentence.words, columns, strict=False)]

    def target(self, example: TaggedSentence, inputs: Sequence[ModelInput], known: bool = True) -> list[list[int]]:
        """Return the number of the tag at each place of each input. See `HeadReader.target`."""
        assert example.tags is not None, "the examples have tags"
        numbers = [label_number(self._numbers, tag, known) for tag in example.tags]
        return [numbers[each.first : each.first + len(each.places)] for each in inputs]

    def predict(self, example: TaggedSentence, inputs: Sequence[ModelInput], outputs: Sequence[Any]) -> TagPrediction:
        """Return the prediction for a sentence.

        outputs: logits (S, C) of each input's tokens, or `TagSequence`s of a model with transitions.
        """
        if self._transitions:
            found = outputs[0] if len(outputs) == 1 else join_inputs(outputs, inputs)
            numbers, probabilities = found.numbers, found.probabilities
        else:
            logits = [output[list(each.places)] for each, output in zip(inputs, outputs, strict=True)]
            probabilities = softmax(np.concatenate(logits)) if example.words else np.zeros((0, len(self.labels)))
            numbers = probabilities.argmax(1)
        ends = list(accumulate(len(word) + 1 for word in example.words))
        offsets = tuple((end - 1 - len(word), end - 1) for word, end in zip(example.words, ends, strict=True))
        tags = tuple(self.labels[number] for number in numbers)
        chosen = probabilities[np.arange(len(numbers)), numbers]
        return TagPrediction(example.words, tags, tuple(map(float, chosen)), " ".join(example.words), offsets)
