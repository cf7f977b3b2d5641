"""`Retry`: when a request that failed is tried again."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

AGAIN = frozenset((429, 502, 503, 504))
"""Statuses of a server that may answer later."""


@dataclass(frozen=True)
class Retry:
    """Doubling waits with a random part, so that many clients do not come back together; a server's word goes first.

    attempts: tries in all; first: seconds of the first wait; longest: seconds of any wait. A server that asks for more
    than the longest is not asked again.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 60.0
    draw: random.Random = field(default_factory=random.Random, compare=False)

    def wait(self, attempt: int, status: int | None, headers: Mapping[str, str]) -> float | None:
        """Seconds before the next try; None where there is none.

        attempt: how many there were; status: None where no answer came.
        """
        if attempt >= self.attempts or (status is not None and status not in AGAIN):
            return None
        asked = _retry_after(headers.get("retry-after"))
        if asked is not None and asked > self.longest:
            return None
        backed_off = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(asked or 0.0, backed_off * (0.5 + self.draw.random() / 2))


def _retry_after(value: str | None) -> float | None:
    """Seconds, of a number or a date (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
