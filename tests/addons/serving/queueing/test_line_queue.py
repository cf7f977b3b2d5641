"""The line queue: tickets are admitted as a whole or not at all, take turns, and leave when cancelled."""

import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE

from dragoman.addons.serving.errors import Overloaded
from dragoman.addons.serving.queueing.line_queue import LineQueue, QueuedLine, Ticket
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import Request

REQUEST = Request(SearchConfig())


def ticket(*costs: int) -> Ticket:
    return Ticket([(f"line {place}", REQUEST) for place in range(len(costs))], costs)


def put(queue: LineQueue, *costs: int) -> Ticket:
    new = ticket(*costs)
    queue.put(new, range(len(costs)))
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
def test_tokens_are_counted_exactly_under_any_schedule(most: int, steps: list) -> None:
    """Compared with a model of the queue: lists of waiting lines and of lines in progress."""
    queue = LineQueue(most)
    tickets: list[Ticket] = []
    inside: list[tuple[Ticket, int]] = []
    working = []
    for step, value in steps:
        if step == "put":
            before = sum(each.costs[place] for each, place in [*inside, *working])
            try:
                tickets.append(put(queue, *value))
                inside += [(tickets[-1], place) for place in range(len(value))]
                assert not before or before + sum(value) <= most
            except Overloaded:
                assert before and before + sum(value) > most
        elif step == "take" and inside:
            taken = queue.take(*value, gather=0)
            assert 1 <= len(taken) <= value[1]
            assert len(taken) == 1 or sum(each.cost for each in taken) <= value[0]
            for each in taken:
                inside.remove((each.ticket, each.position))
                working.append((each.ticket, each.position))
                assert not each.ticket.is_done
        elif step == "free" and working:
            one, place = working.pop()
            queue.release(QueuedLine(one, place))
        elif step == "cancel" and value < len(tickets):
            tickets[value].done.cancel()
            inside = [each for each in inside if each[0] is not tickets[value]]
        assert queue.tokens == sum(each.costs[place] for each, place in [*inside, *working])
        assert queue.lines == len(inside)


def test_a_long_ticket_does_not_delay_a_short_one() -> None:
    queue = LineQueue(1000)
    book, sentence = put(queue, *[1] * 50), put(queue, 1)
    taken = queue.take(3, 64, gather=0)
    assert [each.ticket for each in taken] == [book, sentence, book]
    assert [each.position for each in taken] == [0, 0, 1]


def of_client(queue: LineQueue, client: str, *costs: int, beam: int = 1) -> Ticket:
    request = Request(SearchConfig(beam=beam))
    new = Ticket([(f"line {place}", request) for place in range(len(costs))], costs, client=client)
    queue.put(new, range(len(costs)))
    return new


def taken(queue: LineQueue, lines: int) -> list[str | None]:
    return [each.ticket.client for each in queue.take(1000, lines, gather=0)]


def test_clients_take_turns_however_many_tickets_they_have() -> None:
    queue = LineQueue(1000)
    for _ in range(20):
        of_client(queue, "many", 1)
    of_client(queue, "one", 1)
    of_client(queue, "list", 1, 1, 1)
    assert taken(queue, 6) == ["many", "one", "list", "many", "list", "many"]


def test_expensive_lines_count_more() -> None:
    queue = LineQueue(1000)
    of_client(queue, "wide", *[2] * 10, beam=8)
    of_client(queue, "narrow", *[2] * 20, beam=2)
    assert Counter(taken(queue, 15)) == {"wide": 3, "narrow": 12}


def test_a_client_that_returns_has_no_advantage() -> None:
    """Neither time that a client has not used is saved, nor is work forgotten that was done for it."""
    queue = LineQueue(1000, shared_lines=1000)
    of_client(queue, "early", 100)
    of_client(queue, "busy", *[10] * 30)
    assert taken(queue, 11) == ["early"] + ["busy"] * 10
    of_client(queue, "early", *[10] * 10)
    of_client(queue, "late", *[10] * 10)
    assert Counter(taken(queue, 9)) == {"early": 3, "busy": 3, "late": 3}


def test_a_client_has_only_a_share_of_the_lines_in_flight_while_others_have_some() -> None:
    queue = LineQueue(1000, shared_lines=8)
    of_client(queue, "book", *[1] * 50, beam=4)
    lines = queue.take(1000, 16, gather=0)
    assert len(lines) == 16, "a single client has all lines"
    of_client(queue, "sentence", 1)
    assert [each.ticket.client for each in queue.take_available(1000, 16)] == ["sentence"], "the share is exceeded"
    for line in lines[:14]:
        queue.release(line)
    assert len(queue.take_available(1000, 16)) == 2, "half of 8, as the sentence is being translated"
    assert len(queue.take(1000, 16, gather=0)) == 1, "another thread is never idle"


@pytest.mark.parametrize(("beam", "count"), [(1, 16), (4, 4), (8, 2), (16, 1), (64, 1)])
def test_the_share_is_measured_in_hypotheses(beam: int, count: int) -> None:
    queue = LineQueue(1000, shared_lines=8)
    of_client(queue, "sentence", 1)
    assert taken(queue, 1) == ["sentence"]
    of_client(queue, "wide", *[1] * 50, beam=beam)
    assert len(queue.take_available(1000, 64)) == count


def test_clients_with_waiting_lines_have_half_of_a_batch_while_single_lines_arrive() -> None:
    queue = LineQueue(1000, shared_lines=8)
    for name in ("book", "list", "novel"):
        of_client(queue, name, *[1] * 50, beam=4)
    assert len(queue.take_available(1000, 64)) == 9, "a share of three lines each, since no single line has arrived"
    queue = LineQueue(1000, shared_lines=8)
    of_client(queue, "sentence", 1)
    assert taken(queue, 1) == ["sentence"]
    for name in ("book", "list", "novel"):
        of_client(queue, name, *[1] * 50, beam=4)
    found = queue.take_available(1000, 64)
    assert Counter(each.ticket.client for each in found) == {"book": 2, "list": 1, "novel": 1}
    of_client(queue, "other sentence", 1)
    assert [each.ticket.client for each in queue.take_available(1000, 64)] == ["other sentence"]
    queue.release(found[0])
    assert len(queue.take_available(1000, 64)) == 1
    queue = LineQueue(1000, shared_lines=8)
    for number in range(7):
        of_client(queue, f"sentence {number}", 1, beam=4)
    assert len(taken(queue, 7)) == 7
    for name in ("book", "list", "novel"):
        of_client(queue, name, *[1] * 50, beam=4)
    assert len(queue.take_available(1000, 64)) == 1, "an eighth, as there are many single lines"


def test_a_client_with_waiting_lines_leaves_capacity_to_others() -> None:
    queue = LineQueue(100)
    of_client(queue, "many", 60)
    of_client(queue, "many", 15)
    with pytest.raises(Overloaded):
        of_client(queue, "many", 1)
    of_client(queue, "one", 25)
    with pytest.raises(Overloaded):
        of_client(queue, "two", 1)


def test_clients_without_lines_are_forgotten() -> None:
    queue = LineQueue(10**9)
    for number in range(2000):
        of_client(queue, f"client {number}", 1 + number % 50)
        for line in queue.take(100, 10, gather=0):
            queue.release(line)
    assert len(queue._clients) < 300
    withdrawn = of_client(queue, "withdrawn", 1)
    withdrawn.done.cancel()
    assert queue.take_available(10, 10) == [] and not queue.tokens and not queue.lines


def test_a_line_beyond_the_budget_has_a_batch_of_its_own() -> None:
    queue = LineQueue(10)
    big, small = put(queue, 50), None
    with pytest.raises(Overloaded):
        small = put(queue, 1)
    assert small is None
    assert [each.ticket for each in queue.take(5, 64, gather=0)] == [big]


def test_concurrent_tickets_never_exceed_the_capacity() -> None:
    queue, granted, refused = LineQueue(100), [], []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        for _ in range(50):
            try:
                granted.append(put(queue, 3, 4))
            except Overloaded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 14 and len(refused) == 400 - 14 and queue.tokens == 98


def test_takers_wait_and_end_when_the_queue_is_closed() -> None:
    queue, seen = LineQueue(1000), Counter[str]()

    def work() -> None:
        while taken := queue.take(5, 2, gather=0.001):
            for each in taken:
                seen[each.line[0]] += 1
                queue.release(each)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        put(queue, 1, 2, 3)
    queue.close()
    with pytest.raises(Overloaded):
        put(queue, 1)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert seen == {"line 0": 40, "line 1": 40, "line 2": 40} and queue.tokens == 0


def test_a_single_client_does_not_wait_for_others() -> None:
    queue = LineQueue(1000)
    put(queue, 1, 1)
    began = time.monotonic()
    assert len(queue.take(100, 64, gather=PATIENCE)) == 2
    assert time.monotonic() - began < PATIENCE
    put(queue, 1)
    put(queue, 1)
    late = threading.Timer(0.05, lambda: put(queue, 1))
    late.start()
    assert len(queue.take(100, 3, gather=PATIENCE)) == 3
    late.join()
