"""`Keys`: who may use a server: API keys in a SQLite file, which holds their hashes only."""

import hashlib
import hmac
import re
import secrets
import sqlite3
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

from dragoman.base.errors import ConfigError
from dragoman.serving.access.database import Database

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


_SALT = 16
_MOST = 2**53
"""Largest number that JSON's readers keep exact; SQLite's own limit is above."""
_COLUMNS = "id, name, made, revoked, expires, requests_per_minute, tokens_per_minute"
_NOBODY = bytes(_SALT)


class NewKey(NamedTuple):
    """text: the whole key, which is nowhere else; key: what is stored of it but its hash."""

    text: str
    key: Key


class KeyRefused(Exception):
    """A key that opens nothing. Its message is for the client, and the same for all; reason: for the log alone.

    id: the part of the key that is no secret, where the key has the form of one.
    """

    def __init__(
        self, reason: Literal["missing", "malformed", "unknown", "revoked", "expired"], id: str | None = None
    ) -> None:
        super().__init__("a valid API key is needed")
        self.reason, self.id = reason, id


class Keys:
    """The keys in a file. Safe for several threads and processes: what one writes, all others see at once.

    A key's id is found by an index, and the rest of it is compared by its hash, in constant time. Files are made with
    rights for their owner alone. Closed by `close`, or at the end of a `with`.
    """

    def __init__(self, database: Path | str = "keys.db", create: bool = True) -> None:
        """create: make the file where there is none. Raises ConfigError, DataError or ResourceError (`Database`)."""
        self._database = Database(database, create)

    def add(
        self,
        name: str,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        expires: str | date | datetime | None = None,
    ) -> NewKey:
        """A new key, whose text is given here and never again.

        requests_per_minute, tokens_per_minute: its own quotas (default: the server's); expires: a date, the last day
        that the key is for (UTC), or a moment (default: never).

        Raises ConfigError for a name that another key has which is not revoked, and for values that make no sense.
        """
        now = _now()
        key = Key(
            "",
            checked_name(name),
            now,
            None,
            None if expires is None else expiry(expires, now),
            _checked_quota("requests_per_minute", requests_per_minute),
            _checked_quota("tokens_per_minute", tokens_per_minute),
        )
        salt = secrets.token_bytes(_SALT)
        with self._database.writing() as connection:
            if connection.execute("SELECT 1 FROM keys WHERE name = ? AND revoked IS NULL", (key.name,)).fetchone():
                raise ConfigError(f"there is a key named {key.name}: choose another name, or revoke that one first")
            text = random_key()
            while connection.execute("SELECT 1 FROM keys WHERE id = ?", (id_of(text),)).fetchone():
                text = random_key()
            connection.execute(
                f"INSERT INTO keys ({_COLUMNS}, salt, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id_of(text),
                    key.name,
                    int(now.timestamp()),
                    None,
                    None if key.expires is None else int(key.expires.timestamp()),
                    key.requests_per_minute,
                    key.tokens_per_minute,
                    salt,
                    hashed(text, salt),
                ),
            )
            return NewKey(text, _found(connection, str(id_of(text))))

    def all(self) -> list[Key]:
        """All keys, the revoked and expired ones too, in the order in which they were made."""
        with self._database.reading() as connection:
            return [_key(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY made, name, id")]

    def revoke(self, name_or_id: str) -> Key:
        """From now on the key opens nothing, in no process. One that was revoked before stays as it was.

        name_or_id: the name of a key that is not revoked; or an id, or the whole key that has it.
        Raises ConfigError where there is none.
        """
        asked = name_or_id.strip()
        with self._database.writing() as connection:
            if asked.startswith(PREFIX):
                found = id_of(asked) or asked
                rows = connection.execute("SELECT id FROM keys WHERE id = ?", (found,))
            else:
                found = checked_name(asked)
                rows = connection.execute("SELECT id FROM keys WHERE name = ? AND revoked IS NULL", (found,))
            if (row := rows.fetchone()) is None:
                raise ConfigError(f"there is no key {found} that could be revoked: `dragoman keys list` shows them all")
            revoked = (int(_now().timestamp()), row[0])
            connection.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", revoked)
            return _found(connection, row[0])

    def check(self, text: str | None) -> Key:
        """The key that a client has sent. Raises KeyRefused where it opens nothing.

        Expiry is by the system's clock; that a key is revoked is not.
        """
        if not text:
            raise KeyRefused("missing")
        if (id := id_of(text)) is None:
            raise KeyRefused("malformed")
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT {_COLUMNS}, salt, hash FROM keys WHERE id = ?", (id,)).fetchone()
        salt, stored = (_NOBODY, b"") if row is None else (row["salt"], row["hash"])
        # hashed and compared whether or not there is such a key: the time tells nothing
        if not hmac.compare_digest(hashed(text, salt), stored) or row is None:
            raise KeyRefused("unknown", id)
        key = _key(row)
        state = key.state(_now())
        if state != "valid":
            raise KeyRefused(state, id)
        return key

    def close(self) -> None:
        """The file is closed."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _checked_quota(name: str, value: int | None) -> int | None:
    if value is not None and not 1 <= value <= _MOST:
        raise ConfigError(f"{name} must be at least 1: leave it out for the server's own, or revoke the key")
    return value


def _found(connection: sqlite3.Connection, id: str) -> Key:
    return _key(connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (id,)).fetchone())


def _key(row: sqlite3.Row) -> Key:
    made, revoked, expires = (
        None if row[name] is None else datetime.fromtimestamp(row[name], UTC) for name in ("made", "revoked", "expires")
    )
    assert made is not None
    return Key(row["id"], row["name"], made, revoked, expires, row["requests_per_minute"], row["tokens_per_minute"])
