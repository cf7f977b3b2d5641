"""The queue: room is reserved at once or not at all, tickets take turns, what nobody waits for leaves."""

import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.decode.search import SearchConfig
from dragoman.serving.errors import Overloaded
from dragoman.serving.queue import Ticket, WaitingLines
from dragoman.translation.request import Request

REQUEST = Request(SearchConfig())


def ticket(*costs: int) -> Ticket:
    return Ticket([(f"line {place}", REQUEST) for place in range(len(costs))], costs)


def put(waiting: WaitingLines, *costs: int) -> Ticket:
    new = ticket(*costs)
    waiting.put(new, range(len(costs)))
    return new


COSTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(
    most=st.integers(1, 30),
    steps=st.lists(
        st.one_of(
            COSTS.map(lambda costs: ("put", costs)),
            st.tuples(st.just("take"), st.tuples(st.integers(1, 20), st.integers(1, 4))),
            st.tuples(st.just("free"), st.none()),
            st.tuples(st.just("cancel"), st.integers(0, 20)),
        ),
        max_size=30,
    ),
)
def test_tokens_are_counted_exactly_whatever_comes(most: int, steps: list) -> None:
    """Beside a model of it: lists of lines that wait and that are being translated."""
    waiting = WaitingLines(most)
    tickets: list[Ticket] = []
    inside: list[tuple[Ticket, int]] = []
    working = []
    for step, value in steps:
        if step == "put":
            before = sum(each.costs[place] for each, place in [*inside, *working])
            try:
                tickets.append(put(waiting, *value))
                inside += [(tickets[-1], place) for place in range(len(value))]
                assert not before or before + sum(value) <= most
            except Overloaded:
                assert before and before + sum(value) > most
        elif step == "take" and inside:
            taken = waiting.take(*value, gather=0)
            assert 1 <= len(taken) <= value[1]
            assert len(taken) == 1 or sum(each.ticket.costs[each.place] for each in taken) <= value[0]
            for each in taken:
                inside.remove((each.ticket, each.place))
                working.append((each.ticket, each.place))
                assert not each.ticket.is_over
        elif step == "free" and working:
            one, place = working.pop()
            waiting.free(next(iter([type(taken[0])(one, place)])))
        elif step == "cancel" and value < len(tickets):
            tickets[value].done.cancel()
            inside = [each for each in inside if each[0] is not tickets[value]]
        assert waiting.tokens == sum(each.costs[place] for each, place in [*inside, *working])
        assert waiting.lines == len(inside)


def test_a_book_does_not_keep_a_sentence_waiting() -> None:
    waiting = WaitingLines(1000)
    book, sentence = put(waiting, *[1] * 50), put(waiting, 1)
    taken = waiting.take(3, 64, gather=0)
    assert [each.ticket for each in taken] == [book, sentence, book]
    assert [each.place for each in taken] == [0, 0, 1]


def test_a_line_beyond_the_budget_goes_alone() -> None:
    waiting = WaitingLines(10)
    big, small = put(waiting, 50), None
    with pytest.raises(Overloaded):
        small = put(waiting, 1)
    assert small is None
    assert [each.ticket for each in waiting.take(5, 64, gather=0)] == [big]


def test_many_at_once_never_get_more_than_there_is() -> None:
    waiting, granted, refused = WaitingLines(100), [], []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        for _ in range(50):
            try:
                granted.append(put(waiting, 3, 4))
            except Overloaded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 14 and len(refused) == 400 - 14 and waiting.tokens == 98


def test_takers_wait_and_end_when_the_queue_is_closed() -> None:
    waiting, seen = WaitingLines(1000), Counter[str]()

    def work() -> None:
        while taken := waiting.take(5, 2, gather=0.001):
            for each in taken:
                seen[each.ticket.lines[each.place][0]] += 1
                waiting.free(each)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        put(waiting, 1, 2, 3)
    waiting.close()
    with pytest.raises(Overloaded):
        put(waiting, 1)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert seen == {"line 0": 40, "line 1": 40, "line 2": 40} and waiting.tokens == 0


def test_a_client_alone_waits_for_nobody() -> None:
    waiting = WaitingLines(1000)
    put(waiting, 1, 1)
    began = time.monotonic()
    assert len(waiting.take(100, 64, gather=5)) == 2
    assert time.monotonic() - began < 1
    put(waiting, 1)
    put(waiting, 1)
    late = threading.Timer(0.05, lambda: put(waiting, 1))
    late.start()
    assert len(waiting.take(100, 3, gather=5)) == 3
    late.join()
