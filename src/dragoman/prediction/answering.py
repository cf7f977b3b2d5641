"""Extractive question answering: the span of a text that answers a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.labelled.examples import Answer, Question
from dragoman.models.heads import SpanHeadConfig
from dragoman.prediction.inputs import ModelInput
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer

_NO_ANSWER = 0
"""Position of BOS, which stands for "no answer" (Devlin et al. 2019, section 4.3)."""


@dataclass(frozen=True)
class AnswerPrediction:
    """The predicted answer.

    answer: the text between the characters `start` and `end` of the context; empty for no answer. score: the sum of
    the logits of its first and last token. no_answer: the score of "no answer" minus `score`; None if the model always
    answers.
    """

    answer: str
    start: int
    end: int
    score: float
    no_answer: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        values = {"answer": self.answer, "start": self.start, "end": self.end, "score": self.score}
        return values if self.no_answer is None else {**values, "no_answer": self.no_answer}


class AnswerFinder:
    """Converts questions to inputs of a model with a span head, and its outputs to answers.

    A context that does not fit into an input is divided into overlapping inputs, so that every token is covered.
    """

    def __init__(self, tokenizer: Tokenizer, head: SpanHeadConfig, limit: int | None) -> None:
        """limit: maximum number of tokens of an input. A question may take half of it; a longer one is cut."""
        self._tokenizer, self._head, self._limit = tokenizer, head, limit

    def encode(self, examples: Sequence[Question]) -> list[list[ModelInput]]:
        """Return the inputs of each question: BOS, question, EOS, a part of the context, EOS."""
        questions = self._tokenizer.encode_batch([example.question for example in examples])
        contexts = list(dict.fromkeys(example.context for example in examples))
        encoded = dict(zip(contexts, self._tokenizer.encode_batch(contexts), strict=True))
        return [
            list(self._inputs(question, encoded[example.context]))
            for example, question in zip(examples, questions, strict=True)
        ]

    def _inputs(self, question: Sequence[int], context: Sequence[int]) -> Iterator[ModelInput]:
        longest = len(question) if self._limit is None else self._limit // 2 - 2
        cut, question = max(0, len(question) - longest), question[:longest]
        head = (BOS, *question, EOS)
        room = len(context) if self._limit is None else self._limit - len(head) - 1
        stride = max(1, room // 2)
        start = 0
        while True:
            part = context[start : start + room]
            yield ModelInput((*head, *part, EOS), tuple(range(len(head), len(head) + len(part))), start, cut)
            if start + room >= len(context):
                return
            start += stride

    def target(self, example: Question, inputs: Sequence[ModelInput], known: bool = True) -> list[tuple[int, int]]:
        """Return the positions of the first and the last token of the first answer in each input.

        They are the position of "no answer" in an input that does not contain the whole answer.
        """
        if example.impossible or not example.answers:
            return [(_NO_ANSWER, _NO_ANSWER)] * len(inputs)
        first, last = answer_tokens(self._tokenizer.spans(example.context), example.answers[0])
        targets = []
        for each in inputs:
            contained = each.first <= first and last < each.first + len(each.places)
            offset = each.places[0] - each.first if contained else 0
            targets.append((first + offset, last + offset) if contained else (_NO_ANSWER, _NO_ANSWER))
        return targets

    def predict(
        self, example: Question, inputs: Sequence[ModelInput], outputs: Sequence[NDArray[np.float32]]
    ) -> AnswerPrediction:
        """Return the answer with the highest score over all inputs. outputs: logits (S, 2) of each input's tokens."""
        best, span, nothing = -np.inf, (0, 0), np.inf
        for each, logits in zip(inputs, outputs, strict=True):
            nothing = min(nothing, float(logits[_NO_ANSWER].sum()))
            if each.places:
                score, first, last = best_span(logits[list(each.places)], self._head.longest)
                if score > best:
                    best, span = score, (each.first + first, each.first + last)
        missing = nothing - best if self._head.no_answer else None
        if best == -np.inf or (missing is not None and missing > self._head.threshold):
            return AnswerPrediction("", 0, 0, best if np.isfinite(best) else 0.0, missing)
        spans = self._tokenizer.spans(example.context)
        start, end = spans[span[0]][0], spans[span[1]][1]
        return AnswerPrediction(example.context[start:end], start, max(start, end), best, missing)


def answer_tokens(spans: Sequence[tuple[int, int]], answer: Answer) -> tuple[int, int]:
    """Return the first and the last token that overlap an answer. spans: characters of each token of the context."""
    end = answer.start + len(answer.text)
    inside = [number for number, (first, last) in enumerate(spans) if first < end and last > answer.start]
    return (inside[0], inside[-1]) if inside else (0, 0)


def best_span(logits: NDArray[np.float32], longest: int) -> tuple[float, int, int]:
    """Return the best span of at most `longest` tokens: its score, first and last token.

    logits: (N, 2), of the first and of the last token. The score is the sum of both.
    """
    scores = logits[:, None, 0].astype(np.float64) + logits[None, :, 1]
    length = np.arange(len(logits))[None, :] - np.arange(len(logits))[:, None]
    scores[(length < 0) | (length >= longest)] = -np.inf
    place = int(scores.argmax())
    first, last = divmod(place, len(logits))
    return float(scores[first, last]), first, last
