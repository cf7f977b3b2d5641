"""`Key`: what is known of an API key, what one looks like, and how it is hashed."""

import hashlib
import hmac
import re
import secrets
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from dragoman.base.errors import ConfigError

PREFIX = "dgm_"
"""Begins every key, so that people, and programs that look for secrets in code, know one when they see it."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: 32 letters, none that looks like another
_ID, _SECRET = 8, 32
_FORM = re.compile(f"({PREFIX}[{_ALPHABET}]{{{_ID}}})_[{_ALPHABET}]{{{_SECRET}}}", re.ASCII)
_LONGEST_NAME = 64


@dataclass(frozen=True)
class Key:
    """id: the part of the key that is no secret; made, revoked, expires: when, in UTC; None: never.

    requests_per_minute, tokens_per_minute: its own quotas, None where the server's hold.
    """

    id: str
    name: str
    made: datetime
    revoked: datetime | None = None
    expires: datetime | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def state(self, now: datetime) -> Literal["valid", "revoked", "expired"]:
        """What is to be said of it at that moment."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "valid"


def random_key() -> str:
    """`dgm_`, 8 characters that name the key (40 bits), `_`, and 32 that are its secret (160 bits)."""
    public, secret = ("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (_ID, _SECRET))
    return f"{PREFIX}{public}_{secret}"


def id_of(key: str) -> str | None:
    """The part of a key that names it; None for a text that has not the form of a key."""
    match = _FORM.fullmatch(key)
    return None if match is None else match[1]


def hashed(key: str, salt: bytes) -> bytes:
    """What is stored of a key: HMAC-SHA-256 of the whole of it under its own salt.

    A fast hash is enough: 160 random bits cannot be guessed, however fast a guess is. Slow ones are for passwords.
    """
    return hmac.digest(salt, key.encode("utf-8", "surrogatepass"), hashlib.sha256)


def checked_name(name: str) -> str:
    """The name without blanks around it. Raises ConfigError for one that could not be told from another, or an id."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ConfigError(f"the name of a key has 1 to {_LONGEST_NAME} printable characters: choose another")
    if name.startswith(PREFIX):
        raise ConfigError(f"the name of a key must not begin with {PREFIX}, as ids do: choose another")
    return name


def expiry(when: str | date | datetime, now: datetime) -> datetime:
    """The moment at which a key expires; a date is the end of that day in UTC, and so is a time without a zone in UTC.

    Raises ConfigError for what is neither, and for what is past.
    """
    moment = when
    if isinstance(moment, str):
        try:
            moment = date.fromisoformat(moment) if len(moment) <= len("2027-12-31") else datetime.fromisoformat(moment)
        except ValueError:
            raise ConfigError(
                f"{when!r} is no date: write 2027-12-31, the last day that the key is for, or 2027-12-31T18:00+01:00"
            ) from None
    try:
        if not isinstance(moment, datetime):
            moment = datetime.combine(moment, time(), UTC) + timedelta(days=1)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        raise ConfigError(f"{when} is too late: leave it out for a key that does not expire") from None
    if moment <= now:
        raise ConfigError(f"a key that expires on {when} would be expired at once: give a later date")
    return moment
