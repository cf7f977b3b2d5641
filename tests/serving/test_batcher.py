"""Batches of many clients' lines: nobody pays for another's line, and what is known is not computed again."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import pytest

from dragoman.base.errors import DataError
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig
from dragoman.serving.config import QueueConfig
from dragoman.serving.queue.batcher import Batch, Batcher
from dragoman.serving.queue.ticket import Found, Ticket
from dragoman.translation.lines import Line
from dragoman.translation.request import Request, Sampling
from dragoman.translation.result import Translation

REQUEST = Request(SearchConfig())


def found(text: str) -> Found:
    return [Translation(text, 0.0, 0.0, (), None)]  # type: ignore[arg-type]


class Model:
    """Shouts; waits before each batch until it may go on, where it is held."""

    def __init__(self, held: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.begun, self.may_go_on = threading.Semaphore(0), threading.Event()
        if not held:
            self.may_go_on.set()

    def __call__(self, lines: Sequence[Line]) -> Iterator[Found]:
        self.batches.append([text for text, _ in lines])
        self.begun.release()
        assert self.may_go_on.wait(10)
        for text, _ in lines:
            if "bad" in text:
                raise DataError(f"no: {text}")
            yield found(text.upper())


def ticket(*texts: str, request: Request = REQUEST) -> Ticket:
    return Ticket([(text, request) for text in texts], [1] * len(texts))


def texts(done: Ticket) -> list[str]:
    return [each[0].text for each in done.done.result(10)]


def test_what_is_wrong_with_a_line_is_its_own_tickets_alone() -> None:
    model = Model(held=True)
    batcher = Batcher(model, QueueConfig(gather_milliseconds=0))
    first = ticket("first")
    batcher.submit(first)
    assert model.begun.acquire(timeout=10)
    tickets = [ticket("a", "b"), ticket("c", "bad"), ticket("d")]
    for each in tickets:
        batcher.submit(each)
    model.may_go_on.set()
    assert texts(first) == ["FIRST"] and texts(tickets[0]) == ["A", "B"] and texts(tickets[2]) == ["D"]
    with pytest.raises(DataError, match="no: bad"):
        tickets[1].done.result(10)
    assert sorted(model.batches[1]) == ["a", "b", "bad", "c", "d"], "one batch of three clients"
    batcher.close()
    assert batcher.waiting.tokens == 0


def test_the_same_line_is_translated_once() -> None:
    model = Model(held=True)
    watched: list[Batch] = []
    batcher = Batcher(model, QueueConfig(), watched.append)
    first = ticket("x")
    batcher.submit(first)
    assert model.begun.acquire(timeout=10)
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


def test_a_cache_may_be_off_and_never_holds_what_is_drawn() -> None:
    for config, request in (
        (QueueConfig(cache_entries=0), REQUEST),
        (QueueConfig(), Request(Sampling(SamplingConfig()))),
    ):
        model = Model()
        batcher = Batcher(model, config)
        for _ in range(2):
            one = ticket("x", request=request)
            batcher.submit(one)
            assert texts(one) == ["X"]
        assert model.batches == [["x"], ["x"]]
        batcher.close()
    model = Model()
    batcher = Batcher(model, QueueConfig(cache_entries=2))
    for text in ("a", "b", "a", "c", "a", "b"):
        one = ticket(text)
        batcher.submit(one)
        assert texts(one) == [text.upper()]
    assert model.batches == [["a"], ["b"], ["c"], ["b"]], "the one that was not asked for the longest time goes"
    batcher.close()


def test_what_nobody_waits_for_is_not_computed() -> None:
    model = Model(held=True)
    batcher = Batcher(model, QueueConfig())
    first, gone, last = ticket("first"), ticket("gone", "too"), ticket("last")
    batcher.submit(first)
    assert model.begun.acquire(timeout=10)
    for each in (gone, last):
        batcher.submit(each)
    assert gone.done.cancel() and batcher.waiting.lines == 1
    model.may_go_on.set()
    assert texts(last) == ["LAST"] and model.batches == [["first"], ["last"]]
    with pytest.raises(CancelledError):
        gone.done.result(0)
    batcher.close()
    assert batcher.waiting.tokens == 0


def test_a_fault_costs_a_batch_and_not_the_queue() -> None:
    class Broken(str):
        def __hash__(self) -> int:
            raise RuntimeError("a fault")

    batcher = Batcher(Model(), QueueConfig(cache_entries=0))
    broken, fine = ticket(Broken("x")), ticket("y")
    batcher.submit(broken)
    with pytest.raises(RuntimeError, match="a fault"):
        broken.done.result(10)
    batcher.submit(fine)
    assert texts(fine) == ["Y"]
    batcher.close()
    assert batcher.waiting.tokens == 0


def test_a_model_is_exchanged_between_batches() -> None:
    batcher = Batcher(Model(), QueueConfig())
    before = ticket("x")
    batcher.submit(before)
    assert texts(before) == ["X"]
    batcher.replace(lambda lines: iter([found("other")] * len(lines)))
    after = ticket("x")
    batcher.submit(after)
    assert texts(after) == ["other"], "nothing of the model before is remembered"
    batcher.close()


def test_what_waits_is_done_before_the_end() -> None:
    model = Model(held=True)
    batcher = Batcher(model, QueueConfig(batch_lines=1))
    tickets = [ticket(str(number)) for number in range(5)]
    for each in tickets:
        batcher.submit(each)
    threading.Timer(0.1, model.may_go_on.set).start()
    batcher.close()
    assert [texts(each) for each in tickets] == [[str(number)] for number in range(5)]
