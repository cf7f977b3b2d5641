"""`Quotas`: how many requests and tokens a minute a client may have, by token buckets in memory."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_MINUTE = 60_000_000_000
"""Nanoseconds. Debts are counted in units of 1/60,000,000,000, so that buckets are exact: nothing is ever rounded."""

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Account:
    """Whom a request is counted for, and what it may have. A bucket holds one minute's amount: so much at once.

    kind, name: such as `key` and the key's id, or `address` and the client's network. Forgetting is by kind.
    requests_per_minute, tokens_per_minute: at least 1; None: any number.
    """

    kind: str
    name: str
    requests_per_minute: int | None
    tokens_per_minute: int | None

    def __post_init__(self) -> None:
        if not all(limit is None or limit >= 1 for limit in self.limits):
            raise ValueError("a limit is at least 1, or None")

    @property
    def limits(self) -> tuple[int | None, int | None]:
        return self.requests_per_minute, self.tokens_per_minute


class Amount(NamedTuple):
    """What a request costs."""

    requests: int
    tokens: int


@dataclass(frozen=True)
class Refused:
    """Nothing was taken.

    account: whose bucket is too empty; what: of what. seconds: after so many, at least 1, it would be enough if nobody
    took any meanwhile (for `Retry-After`); None: never, since it is more than a full bucket holds.
    """

    account: Account
    what: str
    seconds: int | None


class Reservation:
    """What was taken. Whoever does not use all of it gives the rest back, once or in parts."""

    def __init__(self, quotas: "Quotas", accounts: Sequence[Account], amount: Amount) -> None:
        self._quotas, self._accounts = quotas, tuple(accounts)
        self.amount = amount
        """What of it has not been given back."""

    def give_back(self, tokens: int = 0, requests: int = 0) -> None:
        """At most what is left of it; more is left out, so that nothing is given back twice."""
        self._quotas.take_back(self, Amount(max(requests, 0), max(tokens, 0)))

    def give_all_back(self) -> None:
        """For a request that was not served, such as one that found the queue full."""
        self._quotas.take_back(self, self.amount)


class _Bucket:
    """What an account has taken and time has not yet made good: of requests and of tokens, in 1/60,000,000,000."""

    __slots__ = ("debts", "moment")

    def __init__(self, moment: int) -> None:
        self.debts = [0, 0]
        self.moment = moment


class Quotas:
    """Buckets of many accounts. Each is full at first, and fills at its rate up to one minute's amount.

    From an account, over any time t, no more is granted than its limit · (1 + t / 1 min), after what was given back.
    Only the accounts seen last are remembered, `most` of each kind: one that is forgotten begins anew with full
    buckets, which gives nobody more than he who has so many addresses had anyway. The clock is monotonic: setting the
    system's time changes nothing. Safe for threads; a process has its own.
    """

    def __init__(self, most: int = 65_536, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """most: accounts of a kind that are remembered, about 400 bytes each; clock: nanoseconds."""
        self._most, self._clock = most, clock
        self._lock = threading.Lock()
        self._kinds: dict[str, OrderedDict[str, _Bucket]] = {}

    def __len__(self) -> int:
        """Accounts that are remembered."""
        with self._lock:
            return sum(map(len, self._kinds.values()))

    def reserve(self, accounts: Sequence[Account], tokens: int, requests: int = 1) -> Reservation | Refused:
        """All of it from all accounts, or nothing from any.

        What is refused costs nothing, so a client that waits as long as it is told gets through. Where several accounts
        refuse, the one that takes longest is told.
        """
        amount = Amount(requests, tokens)
        if min(amount) < 0:
            raise ValueError("an amount is not negative")
        if len({(account.kind, account.name) for account in accounts}) < len(accounts):
            raise ValueError("each account is named once")
        with self._lock:
            now = self._clock()
            buckets = [self._bucket(account, now) for account in accounts]
            refused = [
                each
                for account, bucket in zip(accounts, buckets, strict=True)
                if (each := _refused(account, bucket, amount))
            ]
            if refused:
                return max(refused, key=lambda each: float("inf") if each.seconds is None else each.seconds)
            for account, bucket in zip(accounts, buckets, strict=True):
                _add(bucket, account, amount)
        return Reservation(self, accounts, amount)

    def take_back(self, reservation: Reservation, amount: Amount) -> None:
        """As `Reservation.give_back` says."""
        with self._lock:
            left = reservation.amount
            given = Amount(*(min(each) for each in zip(amount, left, strict=True)))
            reservation.amount = Amount(left.requests - given.requests, left.tokens - given.tokens)
            for account in reservation._accounts:
                known = self._kinds.get(account.kind)
                bucket = None if known is None else known.get(account.name)
                if bucket is not None:  # else it was forgotten, and is full
                    # what time makes good until now can be taken off later: the order changes nothing
                    _add(bucket, account, Amount(-given.requests, -given.tokens))

    def _bucket(self, account: Account, now: int) -> _Bucket:
        """The account's, with what it owes now."""
        known = self._kinds.setdefault(account.kind, OrderedDict())
        bucket = known.get(account.name)
        if bucket is None:
            while len(known) >= max(self._most, 1):
                known.popitem(last=False)
            bucket = known[account.name] = _Bucket(now)
        known.move_to_end(account.name)
        passed = max(0, now - bucket.moment)
        bucket.moment += passed
        for which, limit in enumerate(account.limits):
            bucket.debts[which] = 0 if limit is None else max(0, bucket.debts[which] - passed * limit)
        return bucket


def _add(bucket: _Bucket, account: Account, amount: Amount) -> None:
    """Nothing is owed where there is no limit: one that is set later begins with a full bucket."""
    for which, (limit, cost) in enumerate(zip(account.limits, amount, strict=True)):
        if limit is not None:
            bucket.debts[which] = max(0, bucket.debts[which] + cost * _MINUTE)


def _refused(account: Account, bucket: _Bucket, amount: Amount) -> Refused | None:
    worst: Refused | None = None
    for what, limit, debt, cost in zip(("requests", "tokens"), account.limits, bucket.debts, amount, strict=True):
        if limit is None or cost == 0 or (missing := debt + cost * _MINUTE - limit * _MINUTE) <= 0:
            continue
        if cost > limit:
            return Refused(account, what, None)
        seconds = -(-missing // (limit * _SECOND))
        if worst is None or worst.seconds is None or seconds > worst.seconds:
            worst = Refused(account, what, seconds)
    return worst
