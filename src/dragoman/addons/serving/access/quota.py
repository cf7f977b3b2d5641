"""`Quotas`: limits the requests and tokens per minute of each client, with token buckets in memory."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

_MINUTE = 60_000_000_000
"""Nanoseconds per minute. Debts are integers in units of 1/60,000,000,000, so that no amount is ever rounded."""

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Account:
    """A client and its quotas. A bucket holds the quota of one minute, which the client may spend at once.

    name: the id of the client's key, or its network. requests_per_minute, tokens_per_minute: at least 1; None for no
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
        """The limits of requests and tokens per minute."""
        return self.requests_per_minute, self.tokens_per_minute


class Amount(NamedTuple):
    """The cost of a request."""

    requests: int
    tokens: int


class QuotaExceeded(Exception):
    """A reservation exceeds a quota. Nothing was reserved.

    resource: the exhausted quota. retry_after: seconds, at least 1, until the same reservation succeeds if nothing else
    is reserved in the meantime (for `Retry-After`).
    """

    def __init__(self, resource: Literal["requests", "tokens"], retry_after: int) -> None:
        super().__init__(f"the quota of {resource} per minute is exceeded")
        self.resource, self.retry_after = resource, retry_after


class Reservation:
    """An amount that is reserved from an account."""

    def __init__(self, quotas: "Quotas", account: Account, amount: Amount) -> None:
        self._quotas, self.account = quotas, account
        self.amount = amount
        """Zero once the reservation is cancelled."""

    def cancel(self) -> None:
        """Return the amount to the account, for example if the request is rejected because the queue is full.

        Further calls have no effect.
        """
        self._quotas.cancel(self)


class _Bucket:
    """The amounts that an account has spent and not yet regained.

    debts: [requests, tokens], in units of 1/60,000,000,000. updated_at: the time of the last update, in nanoseconds.
    """

    __slots__ = ("debts", "updated_at")

    def __init__(self, updated_at: int) -> None:
        self.debts = [0, 0]
        self.updated_at = updated_at


class Quotas:
    """The token buckets of many accounts. A bucket starts full, and refills at its rate up to the quota of one minute.

    A reservation that exceeds the quota of a whole minute is granted if the bucket is full. The account then has a
    debt, and further reservations are granted when the bucket has refilled. In any time t, an account is granted at
    most limit · (1 + t / 1 min) plus the excess of its last reservation, not counting cancelled reservations.

    Only the most recently seen accounts are stored. An account that was dropped starts again with a full bucket. To
    exploit this, a client would need more addresses than are stored, which would grant it a larger quota anyway. The
    clock is monotonic, so changes to the system time have no effect. Thread-safe. Quotas are separate in each process.
    """

    def __init__(self, capacity: int = 65_536, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """capacity: the maximum number of stored accounts, about 400 bytes each. clock: returns nanoseconds."""
        self._capacity, self._clock = capacity, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of stored accounts."""
        with self._lock:
            return len(self._buckets)

    def reserve(self, account: Account, tokens: int, requests: int = 1) -> Reservation:
        """Reserve tokens and requests, either both or neither.

        Raises QuotaExceeded if they exceed the remaining quota, and ValueError for a negative amount.
        """
        amount = Amount(requests, tokens)
        if min(amount) < 0:
            raise ValueError("an amount must not be negative")
        with self._lock:
            bucket = self._bucket(account, self._clock())
            _check(account, bucket, amount)
            _add(bucket, account, amount)
        return Reservation(self, account, amount)

    def cancel(self, reservation: Reservation) -> None:
        """Cancel a reservation. An account that was dropped in the meantime already has a full bucket."""
        with self._lock:
            account, amount = reservation.account, reservation.amount
            reservation.amount = Amount(0, 0)
            bucket = self._buckets.get(account.name)
            if bucket is not None:
                # the elapsed time is credited later; the order makes no difference
                _add(bucket, account, Amount(-amount.requests, -amount.tokens))

    def _bucket(self, account: Account, now: int) -> _Bucket:
        """Return the account's bucket, with its debts updated to the time `now`."""
        bucket = self._buckets.get(account.name)
        if bucket is None:
            while len(self._buckets) >= max(self._capacity, 1):
                self._buckets.popitem(last=False)
            bucket = self._buckets[account.name] = _Bucket(now)
        self._buckets.move_to_end(account.name)
        elapsed = max(0, now - bucket.updated_at)
        bucket.updated_at += elapsed
        for index, limit in enumerate(account.limits):
            bucket.debts[index] = 0 if limit is None else max(0, bucket.debts[index] - elapsed * limit)
        return bucket


def _add(bucket: _Bucket, account: Account, amount: Amount) -> None:
    """Add an amount to the debts, except for unlimited resources: a limit set later starts with a full bucket."""
    for index, (limit, cost) in enumerate(zip(account.limits, amount, strict=True)):
        if limit is not None:
            bucket.debts[index] = max(0, bucket.debts[index] + cost * _MINUTE)


def _check(account: Account, bucket: _Bucket, amount: Amount) -> None:
    """Raise QuotaExceeded if a quota is insufficient. If both are, report the one that takes longer to refill."""
    worst: QuotaExceeded | None = None
    resources: tuple[Literal["requests", "tokens"], ...] = ("requests", "tokens")
    for resource, limit, debt, cost in zip(resources, account.limits, bucket.debts, amount, strict=True):
        if limit is None or cost == 0 or (shortfall := debt + (min(cost, limit) - limit) * _MINUTE) <= 0:
            continue
        seconds = -(-shortfall // (limit * _SECOND))
        if worst is None or seconds > worst.retry_after:
            worst = QuotaExceeded(resource, seconds)
    if worst is not None:
        raise worst
