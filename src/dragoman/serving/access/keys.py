"""`Keys`: API keys of a server, in a SQLite file that contains only their hashes."""

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
"""The prefix of every key, by which people and secret scanners recognise one."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no two characters look alike
_ID, _SECRET = 8, 32
_FORM = re.compile(f"({PREFIX}[{_ALPHABET}]{{{_ID}}})_[{_ALPHABET}]{{{_SECRET}}}", re.ASCII)
_LONGEST_NAME = 64


@dataclass(frozen=True)
class Key:
    """An API key as stored, without its secret.

    id: the public part of the key. created, revoked, expires: times in UTC, None for never. requests_per_minute,
    tokens_per_minute: its own quotas; None for the server's default. `made` is the old name of `created`.
    """

    id: str
    name: str
    created: datetime
    revoked: datetime | None = None
    expires: datetime | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def made(self) -> datetime:
        """The old name of `created`."""
        return self.created

    def state(self, now: datetime) -> Literal["valid", "revoked", "expired"]:
        """Return the state of the key at a time."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "valid"


def random_key() -> str:
    """Return a new key: `dgm_`, 8 characters that identify it (40 bits), `_`, and 32 secret ones (160 bits)."""
    public, secret = ("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (_ID, _SECRET))
    return f"{PREFIX}{public}_{secret}"


def id_of(key: str) -> str | None:
    """Return the public part of a key, or None for a text that does not have the form of a key."""
    match = _FORM.fullmatch(key)
    return None if match is None else match[1]


def hashed(key: str, salt: bytes) -> bytes:
    """Return the hash that is stored: HMAC-SHA-256 of the whole key with its own salt.

    A fast hash is sufficient: 160 random bits cannot be guessed. Slow hashes are for passwords.
    """
    return hmac.digest(salt, key.encode("utf-8", "surrogatepass"), hashlib.sha256)


def checked_name(name: str) -> str:
    """Return a name, normalised and stripped. Raises ConfigError for one that is ambiguous or looks like an id."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ConfigError(f"the name of a key has 1 to {_LONGEST_NAME} printable characters: choose another")
    if name.startswith(PREFIX):
        raise ConfigError(f"the name of a key must not begin with {PREFIX}, like the id of a key: choose another")
    return name


def expiry(when: str | date | datetime, now: datetime) -> datetime:
    """Return the time at which a key expires. A date means the end of that day; times without a time zone are in UTC.

    Raises ConfigError for a text that is neither, and for a time in the past.
    """
    moment = when
    if isinstance(moment, str):
        try:
            moment = date.fromisoformat(moment) if len(moment) <= len("2027-12-31") else datetime.fromisoformat(moment)
        except ValueError:
            raise ConfigError(
                f"{when!r} is not a date: write 2027-12-31 for the last day on which the key is valid, or a time as "
                "2027-12-31T18:00+01:00"
            ) from None
    try:
        if not isinstance(moment, datetime):
            moment = datetime.combine(moment, time(), UTC) + timedelta(days=1)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        raise ConfigError(f"{when} is too late: leave it out for a key that does not expire") from None
    if moment <= now:
        raise ConfigError(f"{when} is in the past, so the key would never be valid: give a later date")
    return moment


_SALT = 16
_MOST = 2**53
"""The largest integer that all JSON parsers represent exactly; SQLite's own limit is higher."""
_COLUMNS = "id, name, made, revoked, expires, requests_per_minute, tokens_per_minute"
_NOBODY = bytes(_SALT)


class NewKey(NamedTuple):
    """A key that was just created. text: the whole key, which is stored nowhere; key: its record."""

    text: str
    key: Key


class KeyRefused(Exception):
    """A key that is not valid. The message, for the client, never varies; reason: for the log only.

    id: the public part of the key, if it has the form of a key.
    """

    def __init__(
        self, reason: Literal["missing", "malformed", "unknown", "revoked", "expired"], id: str | None = None
    ) -> None:
        super().__init__("a valid API key is required")
        self.reason, self.id = reason, id


class Keys:
    """The keys in a database. Safe for several threads and processes; changes are visible to all of them at once.

    A key is looked up by its id, and its hash is compared in constant time. The file is readable by its owner only.
    Close it with `close` or a `with` statement.
    """

    def __init__(self, database: Path | str = "keys.db", create: bool = True) -> None:
        """create: create the file if it is missing. Raises ConfigError, DataError or ResourceError, as `Database`."""
        self._database = Database(database, create)

    def add(
        self,
        name: str,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        expires: str | date | datetime | None = None,
    ) -> NewKey:
        """Create a key. Its text is returned here only, and cannot be recovered.

        requests_per_minute, tokens_per_minute: its own quotas (default: the server's). expires: the last day on which
        it is valid (UTC), or a time (default: never).

        Raises ConfigError for invalid values, and for the name of another key that is not revoked.
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
        """Return all keys, including revoked and expired ones, in the order of their creation."""
        with self._database.reading() as connection:
            return [_key(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY made, name, id")]

    def revoke(self, name_or_id: str) -> Key:
        """Revoke a key at once, in all processes. A key that is revoked already stays unchanged.

        name_or_id: the name of a key that is not revoked, the id of a key, or the whole key. Raises ConfigError if
        there is no such key.
        """
        wanted = name_or_id.strip()
        with self._database.writing() as connection:
            if wanted.startswith(PREFIX):
                found = id_of(wanted) or wanted
                rows = connection.execute("SELECT id FROM keys WHERE id = ?", (found,))
            else:
                found = checked_name(wanted)
                rows = connection.execute("SELECT id FROM keys WHERE name = ? AND revoked IS NULL", (found,))
            if (row := rows.fetchone()) is None:
                raise ConfigError(f"there is no key {found} to revoke: `dragoman keys list` shows all keys")
            revoked = (int(_now().timestamp()), row[0])
            connection.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", revoked)
            return _found(connection, row[0])

    def check(self, text: str | None) -> Key:
        """Return the key that a client has sent. Raises KeyRefused unless it is valid.

        Expiry depends on the system's clock; revocation does not.
        """
        if not text:
            raise KeyRefused("missing")
        if (id := id_of(text)) is None:
            raise KeyRefused("malformed")
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT {_COLUMNS}, salt, hash FROM keys WHERE id = ?", (id,)).fetchone()
        salt, stored = (_NOBODY, b"") if row is None else (row["salt"], row["hash"])
        # hashed and compared even if there is no such key, so that the time reveals nothing
        if not hmac.compare_digest(hashed(text, salt), stored) or row is None:
            raise KeyRefused("unknown", id)
        key = _key(row)
        state = key.state(_now())
        if state != "valid":
            raise KeyRefused(state, id)
        return key

    def close(self) -> None:
        """Close the database."""
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
        raise ConfigError(f"{name} must be at least 1: omit it for the server's default, or revoke the key")
    return value


def _found(connection: sqlite3.Connection, id: str) -> Key:
    return _key(connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (id,)).fetchone())


def _key(row: sqlite3.Row) -> Key:
    created, revoked, expires = (
        None if row[name] is None else datetime.fromtimestamp(row[name], UTC) for name in ("made", "revoked", "expires")
    )
    assert created is not None
    return Key(row["id"], row["name"], created, revoked, expires, row["requests_per_minute"], row["tokens_per_minute"])
