"""Quotas: never more than a bucket and its rate, exactly as fractions say, under any schedule and from many threads."""

import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.serving.access.quota import Account, Quotas, Refused, Reservation

SECOND = 10**9
LIMITS = st.none() | st.integers(1, 7) | st.integers(50, 2000)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 90 * SECOND)),
        st.tuples(st.just("reserve"), st.sets(st.integers(0, 2), min_size=1), st.integers(0, 60), st.integers(0, 3)),
        st.tuples(st.just("give back"), st.integers(0, 20), st.integers(0, 40), st.integers(0, 2)),
    ),
    max_size=40,
)


class Clock:
    """A clock of nanoseconds that is set by hand."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class PlainBuckets:
    """The textbook's token bucket in fractions: a level that rises at the rate up to the capacity."""

    def __init__(self, accounts: list[Account]) -> None:
        self.limits = [(account.requests_per_minute, account.tokens_per_minute) for account in accounts]
        self.levels = [[None if limit is None else Fraction(limit) for limit in each] for each in self.limits]
        self.moment = 0

    def at(self, now: int) -> None:
        minutes, self.moment = Fraction(now - self.moment, 60 * SECOND), now
        self._add([[(limit or 0) * minutes for limit in each] for each in self.limits])

    def reserve(self, which: list[int], amount: tuple[int, int]) -> bool:
        levels = [(self.levels[each][kind], amount[kind]) for each in which for kind in (0, 1)]
        if any(level is not None and cost > level for level, cost in levels):
            return False
        self._add([[-cost for cost in amount] if each in which else [0, 0] for each in range(len(self.limits))])
        return True

    def give_back(self, which: list[int], amount: tuple[int, int]) -> None:
        self._add([list(amount) if each in which else [0, 0] for each in range(len(self.limits))])

    def _add(self, amounts: list) -> None:
        for levels, limits, amount in zip(self.levels, self.limits, amounts, strict=True):
            for kind, (level, limit) in enumerate(zip(levels, limits, strict=True)):
                if level is not None:
                    levels[kind] = min(Fraction(limit), level + amount[kind])


@settings(max_examples=150, deadline=None)
@given(limits=st.lists(st.tuples(LIMITS, LIMITS), min_size=3, max_size=3), steps=STEPS)
def test_any_schedule_is_that_of_plain_buckets(limits: list, steps: list) -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    accounts = [Account("key", f"{number}", *each) for number, each in enumerate(limits)]
    plain = PlainBuckets(accounts)
    open_ones: list[tuple[Reservation, list[int]]] = []
    taken: list[list[tuple[int, int, int]]] = [[], [], []]  # of each account: when, requests, tokens
    for step in steps:
        plain.at(clock.now)
        if step[0] == "wait":
            clock.now += step[1]
        elif step[0] == "reserve":
            _, which, tokens, requests = step
            which = sorted(which)
            answer = quotas.reserve([accounts[each] for each in which], tokens, requests)
            assert isinstance(answer, Reservation) == plain.reserve(which, (requests, tokens))
            if isinstance(answer, Reservation):
                open_ones.append((answer, which))
                for each in which:
                    taken[each].append((clock.now, requests, tokens))
        elif open_ones:
            _, number, tokens, requests = step
            reservation, which = open_ones[number % len(open_ones)]
            before = reservation.amount
            reservation.give_back(tokens, requests)
            back = (before.requests - reservation.amount.requests, before.tokens - reservation.amount.tokens)
            assert back == (min(requests, before.requests), min(tokens, before.tokens))
            plain.give_back(which, back)
            for each in which:
                taken[each].append((clock.now, -back[0], -back[1]))
    for each, account in enumerate(accounts):
        for kind, limit in enumerate((account.requests_per_minute, account.tokens_per_minute)):
            if limit is not None:
                never_more(limit, [(row[0], row[1 + kind]) for row in taken[each]])


def never_more(limit: int, taken: list[tuple[int, int]]) -> None:
    """In no stretch of time is more taken than a bucket and its rate."""
    for first in range(len(taken)):
        total = 0
        for moment, amount in taken[first:]:
            total += amount
            assert total <= limit * (1 + Fraction(moment - taken[first][0], 60 * SECOND))


@settings(max_examples=150, deadline=None)
@given(
    limit=st.integers(1, 5000),
    other=st.integers(1, 5000),
    costs=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30 * SECOND)), max_size=10),
    asked=st.integers(0, 5000),
)
def test_who_waits_as_told_gets_through_and_not_a_second_sooner(
    limit: int, other: int, costs: list, asked: int
) -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    accounts = [Account("key", "a", None, limit), Account("address", "b", other, None)]
    for cost, pause in costs:
        quotas.reserve(accounts, cost)
        clock.now += pause
    answer = quotas.reserve(accounts, asked)
    if isinstance(answer, Refused):
        assert (answer.seconds is None) == (asked > limit)
        if answer.seconds is not None:
            assert answer.seconds >= 1
            clock.now += (answer.seconds - 1) * SECOND
            assert isinstance(quotas.reserve(accounts, asked), Refused)
            clock.now += SECOND
            assert isinstance(quotas.reserve(accounts, asked), Reservation)


def test_all_or_nothing() -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    key, address = Account("key", "a", 10, 100), Account("address", "b", 10, 50)
    refused = quotas.reserve([key, address], 60)
    assert refused == Refused(address, "tokens", None)
    assert isinstance(quotas.reserve([key], 100), Reservation)  # nothing of the key's was taken
    refused = quotas.reserve([key, address], 50)
    assert refused == Refused(key, "tokens", 30)
    assert isinstance(quotas.reserve([address], 50), Reservation)


def test_requests_are_counted_beside_tokens() -> None:
    quotas = Quotas(clock=Clock())
    account = Account("key", "a", 2, None)
    assert all(isinstance(quotas.reserve([account], 10**9), Reservation) for _ in range(2))
    assert quotas.reserve([account], 0) == Refused(account, "requests", 30)


def test_a_quota_that_is_changed_counts_at_once() -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    assert isinstance(quotas.reserve([Account("key", "a", None, 1000)], 1000), Reservation)
    less = Account("key", "a", None, 100)
    assert quotas.reserve([less], 100) == Refused(less, "tokens", 600)
    free = quotas.reserve([Account("key", "a", None, None)], 10**6)
    assert isinstance(free, Reservation)
    assert isinstance(quotas.reserve([less], 100), Reservation)
    free.give_all_back()  # it was counted for nobody
    assert isinstance(quotas.reserve([less], 1), Refused)


def test_a_clock_that_goes_back_gives_nothing() -> None:
    clock = Clock()
    clock.now = 100 * SECOND
    quotas = Quotas(clock=clock)
    account = Account("key", "a", 2, None)
    assert [isinstance(quotas.reserve([account], 0), Reservation) for _ in range(3)] == [True, True, False]
    clock.now = 0
    assert isinstance(quotas.reserve([account], 0), Refused)
    clock.now = 129 * SECOND
    assert isinstance(quotas.reserve([account], 0), Refused)
    clock.now = 130 * SECOND
    assert isinstance(quotas.reserve([account], 0), Reservation)


def test_setting_the_time_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = Quotas()
    account = Account("key", "a", 1, None)
    assert isinstance(quotas.reserve([account], 0), Reservation)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: 4 * 10**18)
    assert isinstance(quotas.reserve([account], 0), Refused)


def test_a_million_addresses_are_not_remembered() -> None:
    quotas = Quotas(most=1000, clock=Clock())
    key = Account("key", "a", 1, None)
    assert isinstance(quotas.reserve([key], 0), Reservation)
    for number in range(20_000):
        quotas.reserve([Account("address", f"{number}", 1, None)], 0)
    assert len(quotas) == 1001
    assert isinstance(quotas.reserve([key], 0), Refused)  # addresses do not make keys forgotten
    kept = Account("address", "19999", 1, None)
    assert isinstance(quotas.reserve([kept], 0), Refused)
    for number in range(999):
        quotas.reserve([Account("address", f"x{number}", 1, None)], 0)
    assert isinstance(quotas.reserve([kept], 0), Refused)  # seen last of those before


def test_what_is_given_back_to_a_forgotten_account_is_gone() -> None:
    quotas = Quotas(most=1, clock=Clock())
    account = Account("address", "a", None, 100)
    reservation = quotas.reserve([account], 100)
    assert isinstance(reservation, Reservation)
    quotas.reserve([Account("address", "b", None, 100)], 1)
    assert isinstance(quotas.reserve([account], 60), Reservation)
    reservation.give_all_back()
    reservation.give_all_back()
    assert isinstance(quotas.reserve([account], 101), Refused)
    assert isinstance(quotas.reserve([account], 100), Reservation)


@pytest.mark.parametrize("limits", [(0, None), (None, -1)])
def test_no_limit_below_one(limits: tuple) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Account("key", "a", *limits)
    with pytest.raises(ValueError, match="not negative"):
        Quotas().reserve([Account("key", "a", 1, 1)], -1)
    with pytest.raises(ValueError, match="named once"):
        Quotas().reserve([Account("key", "a", 1, 1)] * 2, 1)


class SlowAccount(Account):
    """One that lets other threads go on whenever its limits are read: in the middle of everything."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        time.sleep(0)
        return super().limits


def in_threads(work: Callable[[int], None]) -> None:
    """Eight of them, which take turns as often as can be."""
    usual, start = sys.getswitchinterval(), threading.Barrier(8)

    def begin(number: int) -> None:
        start.wait()
        work(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("turn", range(6))
def test_threads_together_get_no_more_than_one_would(turn: int) -> None:
    quotas = Quotas(clock=Clock())
    account = SlowAccount("key", "a", 400, 500)
    got: list[tuple[int, int]] = []

    def hammer(number: int) -> None:
        requests = tokens = 0
        for turn in range(60):
            answer = quotas.reserve([account], 3 + number % 2)
            if isinstance(answer, Reservation):
                answer.give_back(tokens=turn % 2)
                requests, tokens = requests + 1, tokens + answer.amount.tokens
        got.append((requests, tokens))

    in_threads(hammer)
    requests, tokens = (sum(each) for each in zip(*got, strict=True))
    assert requests <= 400
    assert 500 - 4 < tokens <= 500  # and no less than there was
    assert isinstance(quotas.reserve([account], 500 - tokens), Reservation)
    assert isinstance(quotas.reserve([account], 1), Refused)


def test_threads_together_give_back_what_there_was_once() -> None:
    quotas = Quotas(clock=Clock())
    account = SlowAccount("key", "a", None, 5000)
    first, second = quotas.reserve([account], 1000), quotas.reserve([account], 4000)
    assert isinstance(first, Reservation) and isinstance(second, Reservation)

    def give_back(number: int) -> None:
        for _ in range(200):
            first.give_back(tokens=1)

    in_threads(give_back)  # 1,600 times one of 1,000
    assert first.amount.tokens == 0
    assert isinstance(quotas.reserve([account], 1001), Refused)
    assert isinstance(quotas.reserve([account], 1000), Reservation)
