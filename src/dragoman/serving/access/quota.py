"""`Quotas`: requests and tokens per minute for each client, as token buckets in memory."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

_MINUTE = 60_000_000_000
"""Nanoseconds. Debts are counted in units of 1/60,000,000,000, so that buckets are exact: nothing is ever rounded."""

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Account:
    """A client and its quotas. A bucket holds the quota of one minute, which may be spent at once.

    name: the id of a key, or the network of an address. requests_per_minute, tokens_per_minute: at least 1; None for no
    limit. Raises ValueError for a limit below 1.
    """

    name: str
    requests_per_minute: int | None
    tokens_per_minute: int | None

    def __post_init__(self) -> None:
        if not all(limit is None or limit >= 1 for limit in self.limits):
            raise ValueError("a limit must be at least 1, or None")

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Requests and tokens per minute."""
        return self.requests_per_minute, self.tokens_per_minute


class Amount(NamedTuple):
    """The cost of a request."""

    requests: int
    tokens: int


class QuotaExceeded(Exception):
    """A reservation that was refused; it costs nothing.

    resource: the quota that is exhausted. retry_after: seconds, at least 1, until the same reservation succeeds if
    nothing else is reserved meanwhile (for `Retry-After`); None if it never will, because a full bucket holds less.
    """

    def __init__(self, resource: Literal["requests", "tokens"], retry_after: int | None) -> None:
        super().__init__(f"the quota of {resource} per minute is exceeded")
        self.resource, self.retry_after = resource, retry_after


class Reservation:
    """An amount that was taken from an account."""

    def __init__(self, quotas: "Quotas", account: Account, amount: Amount) -> None:
        self._quotas, self.account = quotas, account
        self.amount = amount
        """Zero once the reservation is cancelled."""

    def cancel(self) -> None:
        """Return the amount: for a request that was not served, such as one that found the queue full.

        Further calls do nothing.
        """
        self._quotas.put_back(self)


class _Bucket:
    """The spent amounts of an account that time has not yet restored, as `debts`: [requests, tokens].

    They are in units of 1/60,000,000,000.
    """

    __slots__ = ("debts", "moment")

    def __init__(self, moment: int) -> None:
        self.debts = [0, 0]
        self.moment = moment


class Quotas:
    """The buckets of many accounts. Each is full at first, and refills at its rate up to the quota of one minute.

    In any time t, an account is granted at most limit · (1 + t / 1 min), not counting cancelled reservations. Only the
    most recently seen accounts are remembered. A forgotten account starts again with a full bucket; to exploit this, a
    client would have to own more addresses than are remembered, which give it more quota anyway. The clock is
    monotonic, so changes of the system's time have no effect. Safe for use by several threads; each process has its own
    quotas.
    """

    def __init__(self, capacity: int = 65_536, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """capacity: the number of accounts that are remembered, about 400 bytes each; clock: in nanoseconds."""
        self._capacity, self._clock = capacity, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        """The number of accounts that are remembered."""
        with self._lock:
            return len(self._buckets)

    def reserve(self, account: Account, tokens: int, requests: int = 1) -> Reservation:
        """Take tokens and requests, both or neither.

        Raises QuotaExceeded; a client that then waits for `retry_after` seconds succeeds. Raises ValueError for a
        negative amount.
        """
        amount = Amount(requests, tokens)
        if min(amount) < 0:
            raise ValueError("an amount must not be negative")
        with self._lock:
            bucket = self._bucket(account, self._clock())
            _check(account, bucket, amount)
            _add(bucket, account, amount)
        return Reservation(self, account, amount)

    def put_back(self, reservation: Reservation) -> None:
        """Cancel a reservation; an account that was forgotten meanwhile has a full bucket already."""
        with self._lock:
            account, amount = reservation.account, reservation.amount
            reservation.amount = Amount(0, 0)
            bucket = self._buckets.get(account.name)
            if bucket is not None:
                # the time since its last use is credited later: the order makes no difference
                _add(bucket, account, Amount(-amount.requests, -amount.tokens))

    def _bucket(self, account: Account, now: int) -> _Bucket:
        """Return the account's bucket, with its debts updated to the time `now`."""
        bucket = self._buckets.get(account.name)
        if bucket is None:
            while len(self._buckets) >= max(self._capacity, 1):
                self._buckets.popitem(last=False)
            bucket = self._buckets[account.name] = _Bucket(now)
        self._buckets.move_to_end(account.name)
        passed = max(0, now - bucket.moment)
        bucket.moment += passed
        for index, limit in enumerate(account.limits):
            bucket.debts[index] = 0 if limit is None else max(0, bucket.debts[index] - passed * limit)
        return bucket


def _add(bucket: _Bucket, account: Account, amount: Amount) -> None:
    """Add an amount to the debts. Without a limit there is no debt: a limit set later starts with a full bucket."""
    for index, (limit, cost) in enumerate(zip(account.limits, amount, strict=True)):
        if limit is not None:
            bucket.debts[index] = max(0, bucket.debts[index] + cost * _MINUTE)


def _check(account: Account, bucket: _Bucket, amount: Amount) -> None:
    """Raise QuotaExceeded if a quota does not suffice, for the resource that takes longest to refill."""
    worst: QuotaExceeded | None = None
    resources: tuple[Literal["requests", "tokens"], ...] = ("requests", "tokens")
    for resource, limit, debt, cost in zip(resources, account.limits, bucket.debts, amount, strict=True):
        if limit is None or cost == 0 or (missing := debt + cost * _MINUTE - limit * _MINUTE) <= 0:
            continue
        if cost > limit:
            raise QuotaExceeded(resource, None)
        seconds = -(-missing // (limit * _SECOND))
        if worst is None or worst.retry_after is None or seconds > worst.retry_after:
            worst = QuotaExceeded(resource, seconds)
    if worst is not None:
        raise worst
