"""The words of a model's input, with the positions of their tokens, for the explanation of a prediction."""

from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.data.labelled.examples import LabelledText, ParsedSentence, Question, TaggedSentence
from dragoman.inference.prediction.heads.filling import MASK_SYMBOL
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.tagging import encode_tagged, split_words
from dragoman.inference.subject import InputWords
from dragoman.models.attention_weights import END, START
from dragoman.models.relevance import words_of_tokens
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer


def words_of(tokenizer: Tokenizer, example: Any, row: ModelInput, has_masks: bool) -> Iterator[InputWords]:
    """Yield the words of each text of an input. has_masks: whether it contains masks, which no text can represent."""
    segments = segments_of(row.ids)
    found = _decoded_spans(tokenizer, row, segments) if has_masks else _spans(tokenizer, example, row, segments)
    for name, text, spans, (start, _) in found:
        units = spans if isinstance(example, TaggedSentence) else split_words(text)
        words, owners = words_of_tokens(spans, units)
        positions = [[start + n for n, owner in enumerate(owners) if owner == number] for number in range(len(words))]
        yield InputWords(name, tuple(text[first:last] for first, last in words), tuple(map(tuple, positions)))


def texts_of(example: Any) -> tuple[str, ...]:
    """Return the texts of an example."""
    if isinstance(example, TaggedSentence | ParsedSentence):
        return (" ".join(example.words),)
    return (example.question, example.context) if isinstance(example, Question) else tuple(example.texts)


def token_names(tokenizer: Tokenizer, row: ModelInput) -> tuple[str, ...]:
    """Return a readable name of each token of an input."""
    names: list[str] = []
    for start, end in segments_of(row.ids):
        names += [*([START] if start and row.ids[start - 1] == BOS else []), *tokenizer.pieces(row.ids[start:end]), END]
    return tuple(names)


def segments_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and end of the tokens of each text in an input, without the special symbols."""
    segments, start = [], 0
    for position, token in enumerate(ids):
        if token == BOS:
            start = position + 1
        elif token == EOS:
            segments.append((start, position))
            start = position + 1
    return segments


def _spans(
    tokenizer: Tokenizer, example: Any, row: ModelInput, segments: Sequence[tuple[int, int]]
) -> list[tuple[str, str, list[tuple[int, int]], tuple[int, int]]]:
    """Return the name and the text of each segment, and the characters of each of its tokens."""
    if isinstance(example, TaggedSentence):
        return [("", " ".join(example.words), _word_spans(tokenizer, example, row), segments[0])]
    if isinstance(example, Question):
        context = tokenizer.spans(example.context)[row.first :]
        spans = [tokenizer.spans(example.question), context]
        names = ["question", "context"]
    else:
        assert isinstance(example, LabelledText)
        spans = [tokenizer.spans(text) for text in example.texts]
        names = _names(len(spans))
    return [
        (name, text, own[: end - start], (start, end))
        for name, text, own, (start, end) in zip(names, texts_of(example), spans, segments, strict=True)
    ]


def _names(texts: int) -> list[str]:
    return [""] if texts == 1 else ["first text", "second text"]


def _decoded_spans(
    tokenizer: Tokenizer, row: ModelInput, segments: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, str, list[tuple[int, int]], tuple[int, int]]]:
    """Yield the values of `_spans` for texts that are decoded from the tokens of an input."""
    for name, (start, end) in zip(_names(len(segments)), segments, strict=True):
        text, spans = b"", []
        for place, token in enumerate(row.ids[start:end], start):
            surface = (
                MASK_SYMBOL.encode()
                if place in row.places
                else tokenizer.surface(token) or SPECIAL_SYMBOLS[UNK].encode()
            )
            before = len(text.decode("utf-8", "ignore")) + len(surface) - len(surface.lstrip())
            text += surface
            after = len(text.rstrip().decode("utf-8", "ignore"))
            spans.append((before, after) if before < after else (0, 0))
        yield name, text.decode("utf-8", "replace"), spans, (start, end)


def _word_spans(tokenizer: Tokenizer, example: TaggedSentence, row: ModelInput) -> list[tuple[int, int]]:
    """Return the characters of the word of each token in the sentence."""
    features, room = len(example.features), len(row.ids) - 2
    if row.factors is None:
        (ids,) = encode_tagged(tokenizer, [example], features)
        lengths = [min(len(each), room) for each in ids]
    else:
        features, lengths = 0, [1] * len(example.words)
    start, before = row.first, row.places[0] - 1 - features
    while before > 0:
        start -= 1
        before -= lengths[start]
    offset = sum(len(word) + 1 for word in example.words[:start])
    spans: list[tuple[int, int]] = []
    for word, length in zip(example.words[start:], lengths[start:], strict=True):
        spans += [(offset, offset + len(word))] * length
        offset += len(word) + 1
    return spans[:room]
