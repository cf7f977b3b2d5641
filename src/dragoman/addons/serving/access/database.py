"""`Database`: an SQLite file of API keys that several threads and processes can use."""

import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from weakref import WeakSet

from dragoman.base.errors import ConfigError, DataError, ResourceError
from dragoman.base.files import sync, unwritable
from dragoman.base.log import warn

_APPLICATION = 0x64676D6B
"""The application_id in the SQLite header, which distinguishes key databases from those of other programs."""
_VERSION = 1
_BUSY_SECONDS = 10.0
"""Time in seconds that a process waits for another process to finish writing. A write takes milliseconds."""

_SCHEMA = f"""
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    revoked INTEGER,
    expires INTEGER,
    requests_per_minute INTEGER,
    tokens_per_minute INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX names ON keys (name) WHERE revoked IS NULL;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""


class Database:
    """A connection to a key database, which is opened on first use and reopened in a forked process."""

    def __init__(self, path: Path | str, create: bool) -> None:
        """create: whether to create a missing file. Only its owner can read the new file.

        Raises ConfigError if the file is missing and must not be created, and the errors of `connection`.
        """
        self.path = Path(path).absolute()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file_id = (0, 0)
        self._inherited: sqlite3.Connection | None = None
        _DATABASES.add(self)
        try:
            exists = self.path.exists()
        except OSError as error:
            raise ResourceError(
                f"cannot open {self.path}: {error.strerror}. Check the permissions of its folders"
            ) from None
        if not exists:
            if not create:
                raise ConfigError(f"there is no key database at {self.path}: `dragoman keys add NAME` creates one")
            self._create_file()
        self._check_file()
        with self.connection():
            pass

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection to one thread at a time.

        Raises DataError for a file that is not a key database, and ResourceError if it cannot be read or written.
        """
        with self._lock:
            try:
                yield self._current_connection()
            except sqlite3.Error as error:
                raise self._convert_error(error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that excludes other writers. It is committed on exit, or rolled back on an exception."""
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            # empty the journal, so that the file alone is complete and can be copied or replaced. If a reader or a full
            # disk prevents this, a later write empties the journal; the transaction is already durable
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the connection. The next use reopens it."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _create_file(self) -> None:
        """Create the file atomically, so that it is never incomplete. A file that already exists is kept."""
        try:
            descriptor, name = tempfile.mkstemp(".partial", f".{self.path.name}.", self.path.parent)
        except OSError as error:
            raise unwritable(self.path, error) from error
        os.close(descriptor)  # readable by its owner only; SQLite gives its journal files the same permissions
        try:
            with closing(sqlite3.connect(name, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for writers
                connection.executescript(_SCHEMA)
            sync(Path(name))
            with suppress(FileExistsError):
                os.link(name, self.path)
            sync(self.path.parent)
        except sqlite3.Error as error:
            raise self._convert_error(error) from error
        except OSError as error:
            raise unwritable(self.path, error) from error
        finally:
            os.unlink(name)

    def _check_file(self) -> None:
        """Raise ConfigError for a file that is not regular, and warn of permissions that are too permissive."""
        mode = self.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{self.path} is not a regular file: use the path of the key database")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            warn(f"users other than its owner can read or write {self.path}, which holds keys: chmod 600 {self.path}")

    def reset_after_fork(self) -> None:
        """Discard the parent's connection in a forked process, in which SQLite forbids using or closing it."""
        self._lock = threading.Lock()  # a thread of the parent may have held the old lock
        self._inherited, self._connection = self._connection or self._inherited, None

    def _current_connection(self) -> sqlite3.Connection:
        """Return a connection to the current file. The keys of a file that was replaced are no longer valid."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise ResourceError(f"cannot read {self.path}: {error.strerror}") from error
        if (status.st_dev, status.st_ino) != self._file_id and self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = self._open()
            self._file_id = (status.st_dev, status.st_ino)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.row_factory = sqlite3.Row
        try:
            application, version = (
                connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("application_id", "user_version")
            )
            if application != _APPLICATION:
                raise DataError(f"{self.path} is empty or belongs to another program: use another file for the keys")
            if version != _VERSION:
                raise DataError(f"{self.path} was created by a newer dragoman (format {version}): upgrade dragoman")
            connection.execute("PRAGMA synchronous = FULL")  # a reported revocation survives a crash
        except BaseException:
            connection.close()
            raise
        return connection

    def _convert_error(self, error: sqlite3.Error) -> Exception:
        """Convert an SQLite error to an error that describes the problem with the file."""
        # the primary code is the lower byte: https://www.sqlite.org/rescode.html
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            return DataError(f"{self.path} is not a key database, or it is damaged ({error}): use another file")
        if code == sqlite3.SQLITE_FULL:
            return ResourceError(f"cannot write {self.path}: the disk is full. Free some space; the keys are unchanged")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return ResourceError(
                f"another process has been writing {self.path} for {_BUSY_SECONDS:g} s: try again later"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return ResourceError(
                f"cannot open {self.path} for writing ({error}). The server also needs write access, because SQLite "
                "keeps its journal in the same folder: grant access to the file and its folder"
            )
        return ResourceError(
            f"cannot read or write {self.path}: {error}. Check that the disk is available and not full"
        )


_DATABASES: WeakSet[Database] = WeakSet()


def _reset_after_fork() -> None:
    for database in _DATABASES:
        database.reset_after_fork()


os.register_at_fork(after_in_child=_reset_after_fork)
