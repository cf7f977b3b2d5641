"""Batches that mix the lines of many clients: clients do not affect one another, and results are reused."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest
from waiting import PATIENCE

from dragoman.addons.serving.config import QueueConfig
from dragoman.addons.serving.queueing.batcher import Batcher, BatchStatistics
from dragoman.addons.serving.queueing.line_queue import Hypotheses, Ticket
from dragoman.base.errors import DataError, ResourceError
from dragoman.decode.decoding import Sampling
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import Request, TextRequest
from dragoman.inference.translation.result import Translation

REQUEST = Request(SearchConfig())


def found(text: str) -> Hypotheses:
    return [Translation(text, 0.0, 0.0, (), None)]  # type: ignore[arg-type]


class Shouting:
    """Shouts; waits before each batch for permission to continue, if it is held."""

    def __init__(self, held: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.begun, self.may_go_on = threading.Semaphore(0), threading.Event()
        if not held:
            self.may_go_on.set()

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        self.batches.append([text for text, _ in lines])
        self.begun.release()
        assert self.may_go_on.wait(10)
        for text, _ in lines:
            if "bad" in text:
                raise DataError(f"no: {text}")
            yield found(text.upper())

    def continuous(self) -> Any:
        return None

    def close(self) -> None:
        pass


class Answering(Shouting):
    """Gives the same answer to every line."""

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        return iter([found("other")] * len(lines))


def ticket(*texts: str, request: Request = REQUEST) -> Ticket:
    return Ticket([(text, request) for text in texts], [1] * len(texts))


def texts(done: Ticket) -> list[str]:
    return [each[0].text for each in done.done.result(10)]


def test_an_error_of_a_line_fails_only_its_own_ticket() -> None:
    model = Shouting(held=True)
    batcher = Batcher(model, QueueConfig(gather_milliseconds=0))
    first = ticket("first")
    batcher.submit(first)
    assert model.begun.acquire(timeout=PATIENCE)
    tickets = [ticket("a", "b"), ticket("c", "bad"), ticket("d")]
    for each in tickets:
        batcher.submit(each)
    model.may_go_on.set()
    assert texts(first) == ["FIRST"] and texts(tickets[0]) == ["A", "B"] and texts(tickets[2]) == ["D"]
    with pytest.raises(DataError, match="no: bad"):
        tickets[1].done.result(10)
    assert sorted(model.batches[1]) == ["a", "b", "bad", "c", "d"], "one batch of three clients"
    batcher.close()
    assert batcher.queue.tokens == 0


def test_the_same_line_is_translated_once() -> None:
    model = Shouting(held=True)
    watched: list[BatchStatistics] = []
    batcher = Batcher(model, QueueConfig(), watched.append)
    first = ticket("x")
    batcher.submit(first)
    assert model.begun.acquire(timeout=PATIENCE)
    two = [ticket("y", "z", "y"), ticket("y")]
    for each in two:
        batcher.submit(each)
    model.may_go_on.set()
    assert texts(two[0]) == ["Y", "Z", "Y"] and texts(two[1]) == ["Y"]
    assert sum(batch.count("y") for batch in model.batches) == 1
    again = ticket("x", "new", "z")
    batcher.submit(again)
    assert texts(again) == ["X", "NEW", "Z"] and model.batches[-1] == ["new"], "the others are known"
    other = ticket("x", request=Request(SearchConfig(beam=2)))
    batcher.submit(other)
    assert texts(other) == ["X"] and model.batches[-1] == ["x"], "another search may find another translation"
    assert [batch.lines for batch in watched] == [1, 2, 1, 1]
    batcher.close()


def test_the_cache_can_be_disabled_and_never_contains_samples() -> None:
    for config, request in (
        (QueueConfig(cache_entries=0), REQUEST),
        (QueueConfig(), Request(Sampling(SamplingConfig()))),
    ):
        model = Shouting()
        batcher = Batcher(model, config)
        for _ in range(2):
            one = ticket("x", request=request)
            batcher.submit(one)
            assert texts(one) == ["X"]
        assert model.batches == [["x"], ["x"]]
        batcher.close()
    model = Shouting()
    batcher = Batcher(model, QueueConfig(cache_entries=2))
    for text in ("a", "b", "a", "c", "a", "b"):
        one = ticket(text)
        batcher.submit(one)
        assert texts(one) == [text.upper()]
    assert model.batches == [["a"], ["b"], ["c"], ["b"]], "the one that was not asked for the longest time goes"
    batcher.close()


def test_cancelled_tickets_are_not_translated() -> None:
    model = Shouting(held=True)
    batcher = Batcher(model, QueueConfig())
    first, gone, last = ticket("first"), ticket("gone", "too"), ticket("last")
    batcher.submit(first)
    assert model.begun.acquire(timeout=PATIENCE)
    for each in (gone, last):
        batcher.submit(each)
    assert gone.done.cancel() and batcher.queue.lines == 1
    model.may_go_on.set()
    assert texts(last) == ["LAST"] and model.batches == [["first"], ["last"]]
    with pytest.raises(CancelledError):
        gone.done.result(0)
    batcher.close()
    assert batcher.queue.tokens == 0


def test_a_bug_costs_a_batch_and_not_the_queue() -> None:
    class Broken(str):
        def __hash__(self) -> int:
            raise RuntimeError("a fault")

    batcher = Batcher(Shouting(), QueueConfig(cache_entries=0))
    broken, fine = ticket(Broken("x")), ticket("y")
    batcher.submit(broken)
    with pytest.raises(RuntimeError, match="a fault"):
        broken.done.result(10)
    batcher.submit(fine)
    assert texts(fine) == ["Y"]
    batcher.close()
    assert batcher.queue.tokens == 0


def test_the_backend_is_replaced_between_batches() -> None:
    batcher = Batcher(Shouting(), QueueConfig())
    before = ticket("x")
    batcher.submit(before)
    assert texts(before) == ["X"]
    batcher.replace(Answering())
    after = ticket("x")
    batcher.submit(after)
    assert texts(after) == ["other"], "nothing of the model before is remembered"
    batcher.close()


def test_queued_lines_are_translated_before_shutdown() -> None:
    model = Shouting(held=True)
    batcher = Batcher(model, QueueConfig(batch_lines=1))
    tickets = [ticket(str(number)) for number in range(5)]
    for each in tickets:
        batcher.submit(each)
    threading.Timer(0.1, model.may_go_on.set).start()
    batcher.close()
    assert [texts(each) for each in tickets] == [[str(number)] for number in range(5)]


class Open:
    """A batch that admits lines while it is decoded, and completes the first line at each call.

    fails: whether the third call fails.
    """

    def __init__(self, model: "Continuing", fails: bool = False) -> None:
        self._model, self._fails = model, fails
        self._lines: list[TextRequest] = []
        self._asked = 0
        self.closed = False

    @property
    def queued(self) -> int:
        return max(0, len(self._lines) - 1)

    @property
    def in_progress(self) -> int:
        return len(self._lines)

    def submit(self, lines: Sequence[TextRequest]) -> list[TextRequest]:
        refused = [line for line in lines if "control" in line[0]]
        self._lines += [line for line in lines if line not in refused]
        self._model.put.append([text for text, _ in lines])
        return refused

    def completed(self, timeout: float) -> list[tuple[TextRequest, Hypotheses]]:
        self._model.asked.release()
        assert self._model.may_go_on.acquire(timeout=PATIENCE)
        self._asked += 1
        if self._fails and self._asked == 3:
            raise ResourceError("no memory")
        line = self._lines.pop(0)
        return [(line, found(line[0].lower()))]

    def close(self) -> None:
        self.closed = True


class Continuing:
    """Whispers while other lines arrive, otherwise shouts; completes a line whenever it may continue."""

    def __init__(self, fails: bool = False) -> None:
        self.put: list[list[str]] = []
        self.asked, self.may_go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.shouting, self.opened = Shouting(), list[Open]()
        self._fails = fails

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        return self.shouting.translate(lines)

    def continuous(self) -> Any:
        self.opened.append(Open(self, self._fails))
        return self.opened[-1]

    def close(self) -> None:
        pass

    def go_on(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.asked.acquire(timeout=PATIENCE)
            self.may_go_on.release()


def test_a_continuous_batch_admits_lines_while_it_is_decoded() -> None:
    going, watched = Continuing(), []
    batcher = Batcher(going, QueueConfig(batch_lines=4, gather_milliseconds=0), watched.append)
    first, second = ticket("a", "b"), ticket("c", "a", "b", "c")
    batcher.submit(first)
    assert going.asked.acquire(timeout=PATIENCE)
    batcher.submit(second)  # while a is being computed
    going.may_go_on.release()
    going.go_on(2)
    assert texts(first) == ["a", "b"] and texts(second) == ["c", "a", "b", "c"]
    assert going.put == [["a", "b"], ["c"]], "what is under way, or was found meanwhile, is not begun again"
    batcher.close()
    assert going.shouting.batches == [] and all(each.closed for each in going.opened)
    assert batcher.queue.tokens == 0 and sum(each.lines for each in watched) == 3


def test_a_single_line_is_not_batched_continuously() -> None:
    going = Continuing()
    batcher = Batcher(going, QueueConfig())
    one = ticket("a")
    batcher.submit(one)
    assert texts(one) == ["A"] and not going.opened
    batcher.close()


def test_lines_that_a_batch_refuses_follow_it_soon() -> None:
    """No other line is admitted before it, regardless of how many arrive."""
    going = Continuing()
    batcher = Batcher(going, QueueConfig(gather_milliseconds=0))
    first, later = ticket("a", "control", "b"), ticket("c", "d")
    batcher.submit(first)
    assert going.asked.acquire(timeout=PATIENCE)
    batcher.submit(later)
    going.may_go_on.release()
    going.go_on(1)
    assert texts(first) == ["a", "CONTROL", "b"]
    going.go_on(2)
    assert texts(later) == ["c", "d"] and going.put == [["a", "control", "b"], ["c", "d"]]
    batcher.close()
    assert batcher.queue.tokens == 0


def test_a_batch_that_fails_is_retried_line_by_line() -> None:
    going = Continuing(fails=True)
    batcher = Batcher(going, QueueConfig(gather_milliseconds=0))
    one = ticket("a", "b", "c", "bad")
    batcher.submit(one)
    going.go_on(3)
    with pytest.raises(DataError, match="no: bad"):
        one.done.result(10)
    batcher.close()
    assert going.put == [["a", "b", "c", "bad"]] and going.shouting.batches[0] == ["c", "bad"]
    assert batcher.queue.tokens == 0


def test_a_continuous_batch_ends_when_the_backend_is_replaced() -> None:
    going = Continuing()
    batcher = Batcher(going, QueueConfig(gather_milliseconds=0))
    first, after = ticket("a", "b"), ticket("c", "d")
    batcher.submit(first)
    assert going.asked.acquire(timeout=PATIENCE)
    other = Shouting()
    batcher.replace(other)
    batcher.submit(after)
    going.may_go_on.release()
    going.go_on(1)
    assert texts(first) == ["a", "b"] and texts(after) == ["C", "D"] and other.batches == [["c", "d"]]
    again = ticket("a")
    batcher.submit(again)
    assert texts(again) == ["A"], "nothing of the model before is remembered"
    batcher.close()
