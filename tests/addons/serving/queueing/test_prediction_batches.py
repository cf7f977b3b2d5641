"""Predictions of several requests are computed together, and each request gets those of its own texts."""

import asyncio
from collections.abc import Sequence
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import PATIENCE

from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.fair_executor import FairExecutor
from dragoman.addons.serving.service.prediction_queue import (
    PredictionBatches,
    PredictionJob,
    PredictionQueue,
    WaitingTexts,
)
from dragoman.inference.prediction.examples import EncodedText
from dragoman.inference.prediction.heads.inputs import ModelInput


class Text(EncodedText):
    """An encoded text whose prediction is its name."""

    def __init__(self, name: str, tokens: int = 1) -> None:
        super().__init__(name, name, [ModelInput((0,) * tokens)])

    @property
    def name(self) -> str:
        return str(self.text)


class Model:
    """A predictor that records its batches. It fails if a batch contains the text `bad`."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered, self.free = Event(), Event()
        self.free.set()

    def encode(self, texts: Sequence[Any], *, first: int = 1) -> list[Any]:
        return list(texts)

    def predict_encoded(self, texts: Sequence[Text], *, batch_tokens: int) -> list[Any]:
        self.batches.append([text.name for text in texts])
        self.entered.set()
        self.free.wait(10)
        if any(text.name == "bad" for text in texts):
            raise RuntimeError("bad text")
        return [text.name for text in texts]


@given(st.lists(st.lists(st.integers(1, 5), max_size=5), min_size=1, max_size=5), st.integers(1, 12), st.integers(0, 2))
def test_every_text_is_predicted_once_in_batches_of_the_right_size(
    requests: list[list[int]], budget: int, models: int
) -> None:
    predictors: list[Any] = [Model() for _ in range(models + 1)]
    batches = PredictionBatches(budget)
    waiting = []
    for number, tokens in enumerate(requests):
        texts: Any = [Text(f"{number}.{index}", size) for index, size in enumerate(tokens)]
        waiting.append(WaitingTexts(predictors[number % len(predictors)], texts))
        batches.add(waiting[-1])
    for one in waiting:
        batches.complete(one)
        batches.remove(one)
    for one in waiting:
        assert one.predictions == [text.name for text in one.texts]  # type: ignore[attr-defined]
    sizes = {text.name: text.tokens for one in waiting for text in one.texts}  # type: ignore[attr-defined]
    for predictor in predictors:
        for batch in predictor.batches:
            total = sum(sizes[name] for name in batch)
            assert total - max(sizes[name] for name in batch) < budget  # the last text fills the batch
        names = [name for batch in predictor.batches for name in batch]
        assert len(names) == len(set(names))


def request(model: Model, client: str, *names: str) -> PredictionJob:
    served: Any = SimpleNamespace(choose=lambda task: model, name="model")
    reservation = SimpleNamespace(cancel=lambda: None)
    texts: Any = [Text(name) for name in names]
    return PredictionJob(served, texts, lambda tokens: reservation, client)  # type: ignore[arg-type,return-value]


async def hold_thread(queue: PredictionQueue, model: Model) -> "asyncio.Task[Any]":
    """Start a request that keeps the thread busy until `model.free` is set."""
    model.free.clear()
    first = asyncio.create_task(queue.predict(request(model, "first", "held")))
    while not model.entered.is_set():
        await asyncio.sleep(0.001)
    return first


def run_requests(bad: bool = False, cancelled: bool = False) -> tuple[Model, list[Any], list[Any]]:
    model, measured = Model(), list[Any]()
    executor = FairExecutor(1, "predicting", Background())
    queue = PredictionQueue(1000, 100, executor.run, lambda name, batch: measured.append(batch))

    async def run() -> list[Any]:
        first = await hold_thread(queue, model)
        names = [("a", "b"), ("c",), ("bad",) if bad else ("d", "e", "f")]
        jobs = [request(model, f"client {number}", *each) for number, each in enumerate(names)]
        tasks = [asyncio.create_task(queue.predict(job)) for job in jobs]
        await asyncio.sleep(0.01)
        if cancelled:
            tasks[2].cancel()
            await asyncio.sleep(0.01)
        model.free.set()
        return await asyncio.gather(first, *tasks, return_exceptions=True)

    results = asyncio.run(asyncio.wait_for(run(), PATIENCE))
    executor.close()
    assert queue.tokens == 0 and not queue._batches._waiting
    return model, results, measured


def test_waiting_requests_share_a_batch() -> None:
    model, results, measured = run_requests()
    assert [[text.prediction for text in each] for each in results] == [["held"], ["a", "b"], ["c"], ["d", "e", "f"]]
    # the requests are encoded one after the other, and the first of them takes the texts of those that wait
    assert len(model.batches) <= 3 and sorted(name for batch in model.batches for name in batch) == sorted(
        ["held", *"abcdef"]
    )
    assert [each.texts for each in measured] and sum(each.texts for each in measured) == 7
    assert all(each.seconds > 0 for each in measured)


def test_an_error_of_one_request_does_not_concern_the_others() -> None:
    _, results, _ = run_requests(bad=True)
    assert [text.prediction for text in results[1]] == ["a", "b"] and [text.prediction for text in results[2]] == ["c"]
    assert isinstance(results[3], RuntimeError)


def test_a_cancelled_request_is_not_computed() -> None:
    model, results, _ = run_requests(cancelled=True)
    assert isinstance(results[3], asyncio.CancelledError)
    assert not {"d", "e", "f"} & {name for batch in model.batches for name in batch}
    assert [text.prediction for text in results[2]] == ["c"]


def test_a_cancelled_computation_ends_between_batches() -> None:
    model = Model()
    executor = FairExecutor(1, "predicting", Background())
    queue = PredictionQueue(1000, 1, executor.run, lambda *_: None)

    async def run() -> None:
        model.free.clear()
        task = asyncio.create_task(queue.predict(request(model, "client", "a", "b", "c")))
        while not model.entered.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        model.free.set()
        await executor.run("client", lambda: None)  # the thread is idle again

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    executor.close()
    assert model.batches == [["a"]]
