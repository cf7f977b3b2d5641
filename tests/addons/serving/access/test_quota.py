"""Quotas never exceed the bucket and its rate, exactly in fractions, under any schedule and with many threads."""

import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.addons.serving.access.quota import Account, QuotaExceeded, Quotas, Reservation

SECOND = 10**9
LIMITS = st.none() | st.integers(1, 7) | st.integers(50, 2000)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 90 * SECOND)),
        st.tuples(st.just("reserve"), st.integers(0, 2), st.integers(0, 60), st.integers(0, 3)),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
    ),
    max_size=40,
)


class Clock:
    """A clock in nanoseconds that is set by hand."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def reserve(quotas: Quotas, account: Account, tokens: int, requests: int = 1) -> Reservation | QuotaExceeded:
    """Return the reservation, or the reason for the refusal."""
    try:
        return quotas.reserve(account, tokens, requests)
    except QuotaExceeded as exceeded:
        return exceeded


def refused(quotas: Quotas, account: Account, tokens: int, requests: int = 1) -> tuple[str, int]:
    with pytest.raises(QuotaExceeded) as exceeded:
        quotas.reserve(account, tokens, requests)
    return exceeded.value.resource, exceeded.value.retry_after


class PlainBuckets:
    """The textbook's token bucket in fractions: a level that rises at the rate up to the capacity.

    A reservation that exceeds the capacity needs a full bucket, and leaves a negative level.
    """

    def __init__(self, accounts: list[Account]) -> None:
        self.limits = [(account.requests_per_minute, account.tokens_per_minute) for account in accounts]
        self.levels = [[None if limit is None else Fraction(limit) for limit in each] for each in self.limits]
        self.moment = 0

    def at(self, now: int) -> None:
        minutes, self.moment = Fraction(now - self.moment, 60 * SECOND), now
        for number, limits in enumerate(self.limits):
            self.add(number, [(limit or 0) * minutes for limit in limits])

    def reserve(self, number: int, amount: tuple[int, int]) -> bool:
        levels = zip(self.levels[number], self.limits[number], amount, strict=True)
        if any(level is not None and cost and min(cost, limit) > level for level, limit, cost in levels):
            return False
        self.add(number, [-cost for cost in amount])
        return True

    def add(self, number: int, amount: list) -> None:
        levels, limits = self.levels[number], self.limits[number]
        for resource, (level, limit) in enumerate(zip(levels, limits, strict=True)):
            if level is not None:
                levels[resource] = min(Fraction(limit), level + amount[resource])


@settings(max_examples=150, deadline=None)
@given(limits=st.lists(st.tuples(LIMITS, LIMITS), min_size=3, max_size=3), steps=STEPS)
def test_any_schedule_equals_plain_buckets(limits: list, steps: list) -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    accounts = [Account(f"{number}", *each) for number, each in enumerate(limits)]
    plain = PlainBuckets(accounts)
    granted: list[tuple[Reservation, int]] = []
    taken: list[list[tuple[int, int, int]]] = [[], [], []]  # for each account: time, requests, tokens
    for step in steps:
        plain.at(clock.now)
        if step[0] == "wait":
            clock.now += step[1]
        elif step[0] == "reserve":
            _, number, tokens, requests = step
            answer = reserve(quotas, accounts[number], tokens, requests)
            assert isinstance(answer, Reservation) == plain.reserve(number, (requests, tokens))
            if isinstance(answer, Reservation):
                granted.append((answer, number))
                taken[number].append((clock.now, requests, tokens))
        elif granted:
            reservation, number = granted[step[1] % len(granted)]
            back = reservation.amount
            reservation.cancel()
            assert reservation.amount == (0, 0)
            plain.add(number, list(back))
            taken[number].append((clock.now, -back.requests, -back.tokens))
    for number, account in enumerate(accounts):
        for resource, limit in enumerate(account.limits):
            if limit is not None:
                never_more(limit, [(row[0], row[1 + resource]) for row in taken[number]])


def never_more(limit: int, taken: list[tuple[int, int]]) -> None:
    """Check that no time interval uses more than the bucket, its rate and the excess of one reservation."""
    for first in range(len(taken)):
        total, excess = 0, 0
        for moment, amount in taken[first:]:
            total, excess = total + amount, max(excess, amount - limit)
            assert total <= limit * (1 + Fraction(moment - taken[first][0], 60 * SECOND)) + excess


@settings(max_examples=150, deadline=None)
@given(
    limit=st.integers(1, 5000),
    requests=st.integers(1, 5000),
    costs=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30 * SECOND)), max_size=10),
    wanted=st.integers(0, 5000),
)
def test_a_client_that_waits_for_retry_after_succeeds_and_no_sooner(
    limit: int, requests: int, costs: list, wanted: int
) -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    account = Account("a", requests, limit)
    for cost, pause in costs:
        reserve(quotas, account, cost)
        clock.now += pause
    answer = reserve(quotas, account, wanted)
    if isinstance(answer, QuotaExceeded):
        assert answer.retry_after >= 1
        clock.now += (answer.retry_after - 1) * SECOND
        assert isinstance(reserve(quotas, account, wanted), QuotaExceeded)
        clock.now += SECOND
        assert isinstance(reserve(quotas, account, wanted), Reservation)


def test_all_or_nothing() -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    account = Account("a", 3, 100)
    quotas.reserve(account, 100, requests=2)
    assert refused(quotas, account, 50) == ("tokens", 30)
    quotas.reserve(account, 0, requests=1)  # the refused reservation took no request
    assert refused(quotas, account, 50) == ("tokens", 30), "the resource that takes longest"
    assert refused(quotas, account, 1) == ("requests", 20)
    assert refused(quotas, account, 101, requests=1) == ("tokens", 60)


def test_more_than_a_full_bucket_is_paid_for_later() -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    account = Account("a", None, 100)
    quotas.reserve(account, 1)
    assert refused(quotas, account, 500) == ("tokens", 1), "only a full bucket may be exceeded"
    clock.now += SECOND
    large = quotas.reserve(account, 500)
    assert refused(quotas, account, 1) == ("tokens", 241) and refused(quotas, account, 500) == ("tokens", 300)
    large.cancel()
    quotas.reserve(account, 100)
    assert refused(quotas, account, 1) == ("tokens", 1)


def test_requests_and_tokens_are_both_counted() -> None:
    quotas = Quotas(clock=Clock())
    account = Account("a", 2, None)
    for _ in range(2):
        quotas.reserve(account, 10**9)
    assert refused(quotas, account, 0) == ("requests", 30)


def test_a_changed_quota_counts_at_once() -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    quotas.reserve(Account("a", None, 1000), 1000)
    less = Account("a", None, 100)
    assert refused(quotas, less, 100) == ("tokens", 600)
    unlimited = quotas.reserve(Account("a", None, None), 10**6)
    quotas.reserve(less, 100)
    unlimited.cancel()  # it was counted for nobody
    assert refused(quotas, less, 1)[0] == "tokens"


def test_a_clock_that_goes_back_grants_nothing() -> None:
    clock = Clock()
    clock.now = 100 * SECOND
    quotas = Quotas(clock=clock)
    account = Account("a", 2, None)
    assert [isinstance(reserve(quotas, account, 0), Reservation) for _ in range(3)] == [True, True, False]
    clock.now = 0
    refused(quotas, account, 0)
    clock.now = 129 * SECOND
    refused(quotas, account, 0)
    clock.now = 130 * SECOND
    quotas.reserve(account, 0)


def test_setting_the_time_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = Quotas()
    account = Account("a", 1, None)
    quotas.reserve(account, 0)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: 4 * 10**18)
    refused(quotas, account, 0)


def test_a_million_addresses_are_not_remembered() -> None:
    quotas = Quotas(capacity=1000, clock=Clock())
    for number in range(20_000):
        reserve(quotas, Account(f"{number}", 1, None), 0)
    assert len(quotas) == 1000
    recent = Account("19999", 1, None)
    refused(quotas, recent, 0)
    for number in range(999):
        reserve(quotas, Account(f"x{number}", 1, None), 0)
    refused(quotas, recent, 0)  # its last request makes it the most recent of the earlier ones
    for number in range(1000):
        reserve(quotas, Account(f"y{number}", 1, None), 0)
    quotas.reserve(recent, 0)


def test_a_cancelled_reservation_of_a_forgotten_account_changes_nothing() -> None:
    quotas = Quotas(capacity=1, clock=Clock())
    account = Account("a", None, 100)
    reservation = quotas.reserve(account, 100)
    quotas.reserve(Account("b", None, 100), 1)
    quotas.reserve(account, 60)
    reservation.cancel()
    reservation.cancel()
    quotas.reserve(account, 100)
    assert refused(quotas, account, 1) == ("tokens", 1), "no more than a full bucket"


@pytest.mark.parametrize("limits", [(0, None), (None, -1)])
def test_no_limit_below_one(limits: tuple) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Account("a", *limits)
    with pytest.raises(ValueError, match="must not be negative"):
        Quotas().reserve(Account("a", 1, 1), -1)


class SlowAccount(Account):
    """An account that lets other threads run whenever its limits are read."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        time.sleep(0)
        return super().limits


def in_threads(work: Callable[[int], None]) -> None:
    """Run in eight threads that switch as often as possible."""
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
def test_many_threads_get_no_more_than_one(turn: int) -> None:
    quotas = Quotas(clock=Clock())
    account = SlowAccount("a", 400, 500)
    got: list[tuple[int, int]] = []

    def hammer(number: int) -> None:
        requests = tokens = 0
        for turn in range(60):
            answer = reserve(quotas, account, 3 + number % 2)
            if isinstance(answer, Reservation):
                if turn % 4 == 0:
                    answer.cancel()
                requests, tokens = requests + answer.amount.requests, tokens + answer.amount.tokens
        got.append((requests, tokens))

    in_threads(hammer)
    requests, tokens = (sum(each) for each in zip(*got, strict=True))
    assert requests <= 400
    assert 500 - 4 < tokens <= 500  # and no less than there was
    quotas.reserve(account, 500 - tokens)
    refused(quotas, account, 1)


def test_a_reservation_that_many_threads_cancel_is_put_back_once() -> None:
    for _ in range(50):
        quotas = Quotas(clock=Clock())
        account = SlowAccount("a", None, 5000)
        first = quotas.reserve(account, 1000)
        quotas.reserve(account, 4000)
        in_threads(lambda _, first=first: first.cancel())
        assert first.amount.tokens == 0
        refused(quotas, account, 1001)
        quotas.reserve(account, 1000)
