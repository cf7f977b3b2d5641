"""Extractive question answering: the span of a text that answers a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.labelled.examples import Answer, Question
from dragoman.inference.prediction.heads.classification import softmax
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer

_NO_ANSWER = 0
"""Position of BOS, which stands for "no answer" (Devlin et al. 2019, section 4.3)."""


_CANDIDATES = 20
"""Number of answers that are returned for each question, as in BERT's script `run_squad.py`."""


@dataclass(frozen=True)
class Candidate:
    """A possible answer: the text between the characters `start` and `end` of the context, with its logits."""

    text: str
    start: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        """The sum of the logits of the first and the last token."""
        return self.start_logit + self.end_logit


@dataclass(frozen=True)
class AnswerPrediction:
    """The predicted answer.

    answer: the text between the characters `start` and `end` of the context; empty for no answer. score: the sum of
    the logits of its first and last token. no_answer: the score of "no answer" minus `score`; None if the model always
    answers. candidates: the best answers with different texts, best first, regardless of whether one is given.
    """

    answer: str
    start: int
    end: int
    score: float
    no_answer: float | None
    candidates: tuple[Candidate, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        values = {"answer": self.answer, "start": self.start, "end": self.end, "score": self.score}
        return values if self.no_answer is None else {**values, "no_answer": self.no_answer}

    def nbest(self) -> list[dict[str, Any]]:
        """Return the best answers in the format of `nbest_predictions.json` of BERT's script `run_squad.py`.

        The empty text stands for no answer. The probabilities are those among these answers.
        """
        rows = [(each.text, each.start_logit, each.end_logit) for each in self.candidates]
        if self.no_answer is not None:
            rows.append(("", self.no_answer + self.score, 0.0))
        rows = sorted(rows, key=lambda row: -(row[1] + row[2])) or [("", 0.0, 0.0)]
        probabilities = softmax(np.array([start + end for _, start, end in rows], np.float32))
        return [
            {"text": text, "probability": float(probability), "start_logit": start, "end_logit": end}
            for (text, start, end), probability in zip(rows, probabilities, strict=True)
        ]


class AnswerFinder:
    """Converts questions to inputs of a model with a span head, and its outputs to answers.

    A context that does not fit into an input is divided into overlapping inputs, so that every token is covered.
    """

    def __init__(
        self, tokenizer: Tokenizer, head: SpanHeadConfig, limit: int | None, threshold: float | None = None
    ) -> None:
        """limit: maximum number of tokens of an input. A question may take half of it; a longer one is cut.

        threshold: the threshold that was chosen on the validation set, which `head.threshold` overrides.
        """
        self._tokenizer, self._head, self._limit = tokenizer, head, limit
        self._spans = lru_cache(maxsize=256)(tokenizer.spans)  # many questions are about the same context
        self._threshold = (threshold or 0.0) if head.threshold is None else head.threshold

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
            cut = 0  # counted once
            if start + room >= len(context):
                return
            start += stride

    def target(self, example: Question, inputs: Sequence[ModelInput], known: bool = True) -> list[tuple[int, int]]:
        """Return the positions of the first and the last token of the first answer in each input.

        They are the position of "no answer" in an input that does not contain the whole answer.
        """
        if example.impossible or not example.answers:
            return [(_NO_ANSWER, _NO_ANSWER)] * len(inputs)
        first, last = answer_tokens(self._spans(example.context), example.answers[0])
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
        nothing = min(float(logits[_NO_ANSWER].sum()) for logits in outputs)
        candidates = self._candidates(example, inputs, outputs)
        if not candidates:
            return AnswerPrediction("", 0, 0, 0.0, nothing if self._head.no_answer else None)
        best = candidates[0]
        missing = nothing - best.score if self._head.no_answer else None
        if missing is not None and missing > self._threshold:
            return AnswerPrediction("", 0, 0, best.score, missing, candidates)
        return AnswerPrediction(best.text, best.start, best.end, best.score, missing, candidates)

    def _candidates(
        self, example: Question, inputs: Sequence[ModelInput], outputs: Sequence[NDArray[np.float32]]
    ) -> tuple[Candidate, ...]:
        """Return the best answers with different texts, best first."""
        found: list[tuple[float, int, int, float, float]] = []
        for each, logits in zip(inputs, outputs, strict=True):
            rows = logits[list(each.places)]
            for score, first, last in best_spans(rows, self._head.longest, _CANDIDATES) if each.places else ():
                found.append(
                    (score, each.first + first, each.first + last, float(rows[first, 0]), float(rows[last, 1]))
                )
        found.sort(key=lambda entry: -entry[0])
        spans = self._spans(example.context) if found else []
        candidates: dict[str, Candidate] = {}
        for _, first, last, start_logit, end_logit in found:
            start, end = spans[first][0], max(spans[first][0], spans[last][1])
            text = example.context[start:end]
            candidates.setdefault(text, Candidate(text, start, end, start_logit, end_logit))
        return tuple(candidates.values())[:_CANDIDATES]

    def obstacle(self, example: Question, inputs: Sequence[ModelInput]) -> str | None:
        """Return why the model cannot give the first answer of a question; None if it can."""
        if example.impossible or not example.answers:
            return None
        first, last = answer_tokens(self._spans(example.context), example.answers[0])
        if last - first >= self._head.longest:
            return f"longer than model.head.longest, which is {self._head.longest} tokens"
        if all(target == (_NO_ANSWER, _NO_ANSWER) for target in self.target(example, inputs)):
            return "not contained in any input: raise data.length"
        return None


def answer_tokens(spans: Sequence[tuple[int, int]], answer: Answer) -> tuple[int, int]:
    """Return the first and the last token that overlap an answer. spans: characters of each token of the context."""
    end = answer.start + len(answer.text)
    inside = [number for number, (first, last) in enumerate(spans) if first < end and last > answer.start]
    return (inside[0], inside[-1]) if inside else (0, 0)


def best_spans(logits: NDArray[np.float32], longest: int, count: int = 1) -> list[tuple[float, int, int]]:
    """Return the `count` best spans of at most `longest` tokens, best first: score, first and last token.

    logits: (N, 2), of the first and of the last token. The score is the sum of both. Of equal scores, the first span is
    better. Fewer spans are returned if no others are possible.
    """
    scores = logits[:, None, 0].astype(np.float64) + logits[None, :, 1]
    length = np.arange(len(logits))[None, :] - np.arange(len(logits))[:, None]
    scores[(length < 0) | (length >= longest)] = -np.inf
    flat = scores.ravel()
    if count == 1:
        places = np.array([flat.argmax()])
    else:
        limit = np.partition(flat, max(0, len(flat) - count))[max(0, len(flat) - count)]
        places = np.flatnonzero(flat >= limit)
        places = places[np.argsort(-flat[places], kind="stable")][:count]
    spans = [(float(flat[place]), *divmod(int(place), len(logits))) for place in places]
    return [span for span in spans if span[0] > -np.inf]
