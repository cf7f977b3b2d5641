"""`PredictionJob`: the texts of a request whose labels are predicted, and the computation of their labels."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.errors import QueueFull, RequestError
from dragoman.addons.serving.models.batched_predictor import BatchedPredictor
from dragoman.addons.serving.models.served_predictors import ServedPredictor
from dragoman.addons.serving.service.prediction_batches import PredictionBatches, WaitingTexts
from dragoman.base.cancellation import until_cancelled
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
    """Measurements of a request for metrics. seconds: its share of the time of its batches, by tokens."""

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
    """Texts to predict labels of. The forms of a text are those of `Predictor.predict`.

    model: the model. reserve: reserves tokens of the client's quota; raises TooManyRequests. client: its name. task:
    the name of one of the tasks of the model; None: the only one.
    """

    model: ServedPredictor
    texts: Sequence[Text]
    reserve: Callable[[int], Reservation]
    client: str
    task: str | None = None


class PredictionQueue:
    """Admits jobs until the queue holds the maximum number of tokens."""

    def __init__(self, max_tokens: int, batch_tokens: int, run: Run, listener: BatchListener) -> None:
        """run: calls functions in a single thread."""
        self._max_tokens, self._run, self._listener = max_tokens, run, listener
        self._batches = PredictionBatches(batch_tokens)
        self.tokens = 0
        """Number of tokens that are waiting or in progress."""

    async def predict(self, job: PredictionJob) -> list[PredictedText | RequestError]:
        """Return the prediction for each text, in order. An error that concerns a single text is in its place.

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


def _encode(predictor: BatchedPredictor, texts: Sequence[Text]) -> list[EncodedText | RequestError]:
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
