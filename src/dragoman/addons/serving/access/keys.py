"""`Keys`: the API keys of a server, in an SQLite file that contains only their hashes."""

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

from dragoman.addons.serving.access.database import Database
from dragoman.base.errors import ConfigError

PREFIX = "dgm_"
"""The prefix of every key, which lets people and secret scanners recognise keys."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no two characters look alike
_ID_LENGTH, _SECRET_LENGTH = 8, 32
_KEY_PATTERN = re.compile(f"({PREFIX}[{_ALPHABET}]{{{_ID_LENGTH}}})_[{_ALPHABET}]{{{_SECRET_LENGTH}}}", re.ASCII)
_MAX_NAME_LENGTH = 64


@dataclass(frozen=True)
class Key:
    """An API key as stored, without its secret.

    id: the public part of the key. created, revoked, expires: times in UTC; None for never. requests_per_minute,
    tokens_per_minute: the quotas of the key; None for the server's default.
    """

    id: str
    name: str
    created: datetime
    revoked: datetime | None = None
    expires: datetime | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def state(self, now: datetime) -> Literal["valid", "revoked", "expired"]:
        """Return the state of the key at a time."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "valid"


def generate_key() -> str:
    """Return a random key: `dgm_`, an id of 8 characters (40 bits), `_`, and 32 secret characters (160 bits)."""
    public, secret = (
        "".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (_ID_LENGTH, _SECRET_LENGTH)
    )
    return f"{PREFIX}{public}_{secret}"


def parse_id(key: str) -> str | None:
    """Return the public part of a key, or None for text that is not a well-formed key."""
    match = _KEY_PATTERN.fullmatch(key)
    return None if match is None else match[1]


def hash_key(key: str, salt: bytes) -> bytes:
    """Return the hash to store: the HMAC-SHA-256 of the whole key with the key's salt.

    A fast hash is sufficient, because 160 random bits cannot be guessed. Slow hashes are needed only for passwords.
    """
    return hmac.digest(salt, key.encode("utf-8", "surrogatepass"), hashlib.sha256)


def normalise_name(name: str) -> str:
    """Return a normalised name. Raises ConfigError for an invalid name and for one that looks like an id."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise ConfigError(
            f"the name of a key must have 1 to {_MAX_NAME_LENGTH} printable characters: choose another name"
        )
    if name.startswith(PREFIX):
        raise ConfigError(f"the name of a key must not begin with {PREFIX}, as ids do: choose another name")
    return name


def parse_expiry(value: str | date | datetime, now: datetime) -> datetime:
    """Return the time at which a key expires. A date means the end of that day. The default time zone is UTC.

    Raises ConfigError for text that is neither a date nor a time, and for a time in the past.
    """
    expires = value
    if isinstance(expires, str):
        try:
            expires = (
                date.fromisoformat(expires) if len(expires) <= len("2027-12-31") else datetime.fromisoformat(expires)
            )
        except ValueError:
            raise ConfigError(
                f"{value!r} is not a date: write 2027-12-31 for the last day on which the key is valid, or a time"
                " such as 2027-12-31T18:00+01:00"
            ) from None
    try:
        if not isinstance(expires, datetime):
            expires = datetime.combine(expires, time(), UTC) + timedelta(days=1)
        expires = (expires if expires.tzinfo else expires.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        raise ConfigError(f"{value} is too late: omit it for a key that does not expire") from None
    if expires <= now:
        raise ConfigError(f"{value} is in the past, so the key would never be valid: choose a later date")
    return expires


_SALT_BYTES = 16
_MAX_QUOTA = 2**53
"""The largest integer that all JSON parsers represent exactly. SQLite's limit is higher."""
_COLUMNS = "id, name, created, revoked, expires, requests_per_minute, tokens_per_minute"
_DUMMY_SALT = bytes(_SALT_BYTES)


class NewKey(NamedTuple):
    """A newly created key. text: the whole key, which is not stored; key: its record."""

    text: str
    key: Key


class InvalidKey(Exception):
    """A request without a valid key. The message, which the client receives, is the same for every reason.

    reason: for the log only. id: the public part of the key, if the key is well-formed.
    """

    def __init__(
        self, reason: Literal["missing", "malformed", "unknown", "revoked", "expired"], id: str | None = None
    ) -> None:
        super().__init__("a valid API key is required")
        self.reason, self.id = reason, id


class Keys:
    """The keys in a database. Several threads and processes can use it, and changes are visible to all of them at once.

    A key is looked up by its id, and its hash is compared in constant time. Only the owner of the file can read it. Use
    `close` or a `with` statement to close the database.

    >>> from dragoman import Keys
    >>> with Keys("keys.db") as keys:
    ...     text, _ = keys.add("laptop")
    ...     print([key.name for key in keys.all()], keys.check(text).name)
    ['laptop'] laptop
    """

    def __init__(self, database: Path | str = "keys.db", create: bool = True) -> None:
        """create: whether to create a missing file. Raises ConfigError, DataError and ResourceError, as `Database`."""
        self._database = Database(database, create)

    def add(
        self,
        name: str,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        expires: str | date | datetime | None = None,
    ) -> NewKey:
        """Create a key. The whole key is returned only once, and cannot be recovered.

        requests_per_minute, tokens_per_minute: the quotas of the key (default: the server's). expires: the last day on
        which the key is valid (UTC), or a time (default: never).

        Raises ConfigError for invalid values, and for a name that another key has, unless that key is revoked.
        """
        now = _now()
        key = Key(
            "",
            normalise_name(name),
            now,
            None,
            None if expires is None else parse_expiry(expires, now),
            _validate_quota("requests_per_minute", requests_per_minute),
            _validate_quota("tokens_per_minute", tokens_per_minute),
        )
        salt = secrets.token_bytes(_SALT_BYTES)
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM keys WHERE name = ? AND revoked IS NULL", (key.name,)).fetchone():
                raise ConfigError(
                    f"a key named {key.name} exists: choose another name, or revoke the existing key first"
                )
            text = generate_key()
            while connection.execute("SELECT 1 FROM keys WHERE id = ?", (parse_id(text),)).fetchone():
                text = generate_key()
            connection.execute(
                f"INSERT INTO keys ({_COLUMNS}, salt, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    parse_id(text),
                    key.name,
                    int(now.timestamp()),
                    None,
                    None if key.expires is None else int(key.expires.timestamp()),
                    key.requests_per_minute,
                    key.tokens_per_minute,
                    salt,
                    hash_key(text, salt),
                ),
            )
            return NewKey(text, _load_key(connection, str(parse_id(text))))

    def all(self) -> list[Key]:
        """Return all keys, including revoked and expired ones, in the order of their creation."""
        with self._database.connection() as connection:
            return [
                _key_of_row(row)
                for row in connection.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY created, name, id")
            ]

    def revoke(self, name_or_id: str) -> Key:
        """Revoke a key immediately, in all processes. A key that is already revoked remains unchanged.

        name_or_id: the name of a key that is not revoked, the id of a key, or the whole key. Raises ConfigError if
        there is no such key.
        """
        query = name_or_id.strip()
        with self._database.transaction() as connection:
            if query.startswith(PREFIX):
                identifier = parse_id(query) or query
                rows = connection.execute("SELECT id FROM keys WHERE id = ?", (identifier,))
            else:
                identifier = normalise_name(query)
                rows = connection.execute("SELECT id FROM keys WHERE name = ? AND revoked IS NULL", (identifier,))
            if (row := rows.fetchone()) is None:
                raise ConfigError(f"there is no key {identifier} to revoke: `dragoman keys list` shows all keys")
            revoked = (int(_now().timestamp()), row[0])
            connection.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", revoked)
            return _load_key(connection, row[0])

    def check(self, text: str | None) -> Key:
        """Return the record of a key that a client has sent. Raises InvalidKey unless the key is valid.

        Expiry depends on the system clock, but revocation does not.
        """
        if not text:
            raise InvalidKey("missing")
        if (id := parse_id(text)) is None:
            raise InvalidKey("malformed")
        with self._database.connection() as connection:
            row = connection.execute(f"SELECT {_COLUMNS}, salt, hash FROM keys WHERE id = ?", (id,)).fetchone()
        salt, stored = (_DUMMY_SALT, b"") if row is None else (row["salt"], row["hash"])
        # the hash is computed and compared even for an unknown key, so that the response time reveals nothing
        if not hmac.compare_digest(hash_key(text, salt), stored) or row is None:
            raise InvalidKey("unknown", id)
        key = _key_of_row(row)
        state = key.state(_now())
        if state != "valid":
            raise InvalidKey(state, id)
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


def _validate_quota(name: str, value: int | None) -> int | None:
    if value is not None and not 1 <= value <= _MAX_QUOTA:
        raise ConfigError(
            f"{name} must be between 1 and {_MAX_QUOTA:,}. Omit it to use the server's default, or revoke the key"
        )
    return value


def _load_key(connection: sqlite3.Connection, id: str) -> Key:
    return _key_of_row(connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (id,)).fetchone())


def _key_of_row(row: sqlite3.Row) -> Key:
    created, revoked, expires = (
        None if row[name] is None else datetime.fromtimestamp(row[name], UTC)
        for name in ("created", "revoked", "expires")
    )
    assert created is not None
    return Key(row["id"], row["name"], created, revoked, expires, row["requests_per_minute"], row["tokens_per_minute"])
