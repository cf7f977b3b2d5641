"""`PredictionBatches`: predicts labels of the texts of several requests together."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from threading import Lock

from dragoman.addons.serving.models.batched_predictor import BatchedPredictor
from dragoman.base.cancellation import check_cancelled
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.examples import EncodedText


@dataclass(eq=False)
class WaitingTexts:
    """The texts of a request that wait for their predictions.

    predictions: those that are known, in the order of the texts. seconds: the fraction for the request, by tokens, of the
    time that its batches took.
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
