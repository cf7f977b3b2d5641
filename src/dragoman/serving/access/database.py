"""`Database`: the SQLite file of API keys, for several threads and processes."""

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
"""SQLite's application_id in the file's header, which tells this database from those of other programs."""
_VERSION = 1
_PATIENCE = 10.0
"""How long a process waits while another one is writing, in seconds; a write takes milliseconds."""

_SCHEMA = f"""
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    made INTEGER NOT NULL,
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
    """A connection to the database, opened on first use and opened again in a forked process."""

    def __init__(self, path: Path | str, create: bool) -> None:
        """create: create the file, readable by its owner only, if it is missing.

        Raises ConfigError if it is missing and must not be created, and what `reading` raises.
        """
        self.path = Path(path).absolute()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._inherited: sqlite3.Connection | None = None
        _ALL.add(self)
        try:
            is_there = self.path.exists()
        except OSError as error:
            raise ResourceError(
                f"cannot open {self.path}: {error.strerror}. Check the permissions of its folders"
            ) from None
        if not is_there:
            if not create:
                raise ConfigError(f"there is no database of keys at {self.path}: `dragoman keys add NAME` creates one")
            self._create_file()
        self._check_file()
        with self.reading():
            pass

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, to one thread at a time.

        Raises DataError for a file that is not a database of keys, ResourceError if it cannot be read or written.
        """
        with self._lock:
            try:
                yield self._connected()
            except sqlite3.Error as error:
                raise self._translated(error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction, without other writers: committed durably on exit, rolled back on an exception."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            # empty the journal at once, so that the file alone is complete and can be copied or replaced. If somebody
            # is reading or the disk is full, a later write does it: the transaction is durable already
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _create_file(self) -> None:
        """Create the file atomically, so that no process sees half of it; if another one was faster, keep its file."""
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
            raise self._translated(error) from error
        except OSError as error:
            raise unwritable(self.path, error) from error
        finally:
            os.unlink(name)

    def _check_file(self) -> None:
        """Raises ConfigError for a file that is not regular; warns of permissions that are too wide."""
        mode = self.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{self.path} is not a regular file: name the database of keys")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            warn(f"users other than its owner can read or write {self.path}, which holds keys: chmod 600 {self.path}")

    def leave_to_parent(self) -> None:
        """In a child process: forget the parent's connection, which SQLite forbids to use or close there."""
        self._lock = threading.Lock()  # a thread that does not exist here may have held it
        self._inherited, self._connection = self._connection or self._inherited, None

    def _connected(self) -> sqlite3.Connection:
        """The connection to the file that currently has this path: keys of a file that was replaced are not valid."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise ResourceError(f"cannot read {self.path}: {error.strerror}") from error
        if (status.st_dev, status.st_ino) != self._file and self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = self._connect()
            self._file = (status.st_dev, status.st_ino)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.row_factory = sqlite3.Row
        try:
            application, version = (
                connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version")
            )
            if application != _APPLICATION:
                raise DataError(f"{self.path} is empty or belongs to another program: name another file for the keys")
            if version != _VERSION:
                raise DataError(f"{self.path} was created by a newer dragoman (format {version}): install that one")
            connection.execute("PRAGMA synchronous = FULL")  # a reported revocation survives a crash
        except BaseException:
            connection.close()
            raise
        return connection

    def _translated(self, error: sqlite3.Error) -> Exception:
        """Translate an error of SQLite into one that says what is wrong with the file."""
        # the primary code is the lower byte: https://www.sqlite.org/rescode.html
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            return DataError(f"{self.path} is not a database of keys, or it is damaged ({error}): name another file")
        if code == sqlite3.SQLITE_FULL:
            return ResourceError(f"cannot write {self.path}: the disk is full. Free some space; the keys are unchanged")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return ResourceError(f"another process has been writing {self.path} for {_PATIENCE:g} s: try again later")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return ResourceError(
                f"cannot open {self.path} for writing ({error}). The server needs this too, since SQLite keeps its "
                "journal in the same folder: grant access to the file and its folder"
            )
        return ResourceError(f"cannot read or write {self.path}: {error}; is the disk full or gone?")


_ALL: WeakSet[Database] = WeakSet()


def _leave_all_to_parent() -> None:
    for database in _ALL:
        database.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all_to_parent)
