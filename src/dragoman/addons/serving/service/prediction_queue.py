"""`PredictionQueue`: predicts the labels of the texts of many requests, several requests in one batch."""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from threading import Lock
from typing import Any, Protocol

from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.errors import QueueFull, RequestError
from dragoman.addons.serving.models.batched_predictor import BatchedPredictor
from dragoman.addons.serving.models.graph_nodes import RequestedNode
from dragoman.addons.serving.models.served_predictors import ServedPredictor
from dragoman.base.cancellation import check_cancelled, until_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.examples import EncodedText, Text


@dataclass(frozen=True)
class PredictedText:
    """The prediction for a text. cut: number of tokens at its end that were not read."""

    prediction: Prediction
    cut: int


@dataclass(frozen=True)
class PredictionBatch:
    """Measurements of a request for metrics. seconds: the time of its batches, in proportion to its tokens."""

    texts: int
    tokens: int
    seconds: float


Run = Callable[[str, Callable[[], Any]], Awaitable[Any]]
"""Calls a function in a thread, in turn with those of other clients. The string is the name of the client."""


class BatchListener(Protocol):
    """Receives measurements. model: the name of the model."""

    def __call__(self, model: str, batch: PredictionBatch) -> None:
        """Record a batch."""
        ...


@dataclass(frozen=True)
class PredictionJob:
    """Texts to predict labels of. The forms of a text are those of `Predictor.predict`, or nodes.

    model: the model. reserve: reserves tokens of the client's quota; raises TooManyRequests. client: its name. task:
    the name of one of the tasks of the model; None: the only one.
    """

    model: ServedPredictor
    texts: Sequence[Text | RequestedNode]
    reserve: Callable[[int], Reservation]
    client: str
    task: str | None = None


@dataclass(eq=False)
class WaitingTexts:
    """The texts of a request that wait for their predictions.

    predictions: those that are known, in the order of the texts. seconds: the time of its batches,
    multiplied by its fraction of their tokens.
    """

    predictor: BatchedPredictor
    texts: Sequence[EncodedText]
    predictions: list[Prediction] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether all predictions are known."""
        return len(self.predictions) == len(self.texts)


class PredictionBatches:
    """Fills the batch of a request with texts of other requests to the same model.

    A single thread calls `complete`; other threads may call `add` and `remove`.
    """

    def __init__(self, batch_tokens: int) -> None:
        """batch_tokens: number of tokens at which a batch is full."""
        self._batch_tokens = batch_tokens
        self._waiting: list[WaitingTexts] = []
        self._lock = Lock()

    def add(self, waiting: WaitingTexts) -> None:
        """Add the texts of a request, which other requests may compute from now on."""
        with self._lock:
            self._waiting.append(waiting)

    def remove(self, waiting: WaitingTexts) -> None:
        """Remove the texts of a request that is complete or cancelled."""
        with self._lock:
            self._waiting.remove(waiting)

    def complete(self, waiting: WaitingTexts) -> None:
        """Predict the labels of all texts of a request that are still missing. It is cancelled between batches."""
        while not waiting.is_complete:
            check_cancelled()
            self._compute(waiting, self._take(waiting))

    def _take(self, first: WaitingTexts) -> dict[WaitingTexts, list[EncodedText]]:
        """Return the texts of a batch: those of `first`, then those of other requests in turn, one of each."""
        texts = {first: deque(first.texts[len(first.predictions) :])}
        with self._lock:
            others = [each for each in self._waiting if each.predictor is first.predictor and each is not first]
        taken: dict[WaitingTexts, list[EncodedText]] = {first: []}
        tokens = 0
        while texts[first] and tokens < self._batch_tokens:
            taken[first].append(texts[first].popleft())
            tokens += taken[first][-1].tokens
        texts = {each: deque(each.texts[len(each.predictions) :]) for each in others}
        for each in cycle(others) if others else ():
            if tokens >= self._batch_tokens or not any(texts.values()):
                break
            if texts[each]:
                text = texts[each].popleft()
                taken.setdefault(each, []).append(text)
                tokens += text.tokens
        return taken

    def _compute(self, first: WaitingTexts, taken: dict[WaitingTexts, list[EncodedText]]) -> None:
        """Predict the labels of a batch. An error in the texts of other requests does not concern `first`."""
        started = time.perf_counter()
        flat = [text for texts in taken.values() for text in texts]
        try:
            predictions = iter(first.predictor.predict_encoded(flat, batch_tokens=self._batch_tokens))
        except Exception:
            if len(taken) == 1:
                raise
            self._compute(first, {first: taken[first]})
            return
        seconds = (time.perf_counter() - started) / max(1, sum(text.tokens for text in flat))
        for waiting, texts in taken.items():
            waiting.predictions += [next(predictions) for _ in texts]
            waiting.seconds += seconds * sum(text.tokens for text in texts)


class PredictionQueue:
    """Admits jobs until the queue holds the maximum number of tokens."""

    def __init__(self, max_tokens: int, batch_tokens: int, run: Run, listener: BatchListener) -> None:
        """run: calls functions in a single thread."""
        self._max_tokens, self._run, self._listener = max_tokens, run, listener
        self._batches = PredictionBatches(batch_tokens)
        self.tokens = 0
        """Number of tokens that are waiting or in progress."""

    async def predict(self, job: PredictionJob) -> list[PredictedText | RequestError]:
        """Return the prediction for each text, in order. An error that concerns a single text replaces its prediction.

        Raises RequestError if all texts have the wrong form, or if the model has no such task; TooManyRequests, and
        QueueFull. If the calling coroutine is cancelled, so is the computation, after its current batch.
        """
        predictor = job.model.choose(job.task)  # which a reload does not change during the request
        encoded = await self._run(job.client, lambda: _encode(predictor, job.texts))
        valid = [each for each in encoded if isinstance(each, EncodedText)]
        errors = [each for each in encoded if isinstance(each, RequestError)]
        if errors and not valid:
            raise errors[0]
        tokens = sum(each.tokens for each in valid)
        reservation = job.reserve(tokens)
        if self.tokens and self.tokens + tokens > self._max_tokens:
            reservation.cancel()
            raise QueueFull("the queue is full: try again later", retry_after=1)
        self.tokens += tokens
        waiting = WaitingTexts(predictor, valid)
        self._batches.add(waiting)
        try:
            await self._run(job.client, lambda: self._batches.complete(waiting))
        finally:
            self._batches.remove(waiting)
            self.tokens -= tokens
        self._listener(job.model.name, PredictionBatch(len(valid), tokens, waiting.seconds))
        results = iter(waiting.predictions)
        return [each if isinstance(each, RequestError) else PredictedText(next(results), each.cut) for each in encoded]


def _encode(predictor: BatchedPredictor, texts: Sequence[Text | RequestedNode]) -> list[EncodedText | RequestError]:
    """Encode all texts together, or one by one if one of them has an error."""
    try:
        return list(predictor.encode(texts))
    except (ConfigError, DataError):
        encoded: list[EncodedText | RequestError] = []
        for number, text in until_cancelled(list(enumerate(texts, 1))):
            try:
                encoded += predictor.encode([text], first=number)
            except (ConfigError, DataError) as error:
                encoded.append(RequestError(str(error)))
        return encoded
