"""`Database`: the SQLite file of the keys, for several threads and processes at once."""

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from weakref import WeakSet

from dragoman.base.errors import ConfigError, DataError, ResourceError
from dragoman.base.files import unwritable
from dragoman.base.log import warn

_APPLICATION = 0x64676D6B
"""In the file's header (SQLite's application_id), so that no other program's database is taken for one of keys."""
_VERSION = 1
_PATIENCE = 10.0
"""Seconds that a process waits for another one that writes; a write takes milliseconds."""

_SCHEMA = """
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
"""


class Database:
    """A connection that is made when it is first needed, and made anew in a process that was forked."""

    def __init__(self, path: Path | str, create: bool) -> None:
        """create: make the file, readable by its owner alone, where there is none.

        Raises ConfigError where there is none and none is to be made, and what `reading` raises.
        """
        self.path = Path(path).absolute()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inherited: sqlite3.Connection | None = None
        _ALL.add(self)
        if not self.path.exists():
            if not create:
                raise ConfigError(f"there is no database of keys at {self.path}: `dragoman keys add NAME` makes one")
            self._make_file()
        self._look()
        with self.reading():
            pass

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time.

        Raises DataError for a file that is no database of keys, ResourceError where it cannot be read or written.
        """
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                yield self._connection
            except sqlite3.Error as error:
                raise self._named(error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: durable on leaving, undone where something is raised; no other can write meanwhile."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """The file is closed; it is opened again when something is asked."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _make_file(self) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:  # another process was faster
            return
        except OSError as error:
            raise unwritable(self.path, error) from error
        os.close(descriptor)

    def _look(self) -> None:
        """What SQLite would not say of the file."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise ResourceError(f"cannot read {self.path}: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{self.path} is no regular file: name the database of keys")
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            warn(f"others than its owner may read or write {self.path}, which holds keys: chmod 600 {self.path}")

    def leave_to_parent(self) -> None:
        """In a child process: what was opened before is its parent's. SQLite wants it neither used nor closed there."""
        self._lock = threading.Lock()  # another thread, which is not here, may have held it
        self._inherited, self._connection = self._connection or self._inherited, None

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
            application, version, tables = (
                connection.execute(what).fetchone()[0]
                for what in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
            )
            if tables == 0:
                _lay_out(connection)
            elif application != _APPLICATION:
                raise DataError(f"{self.path} is the database of another program: name another file for the keys")
            elif version != _VERSION:
                raise DataError(f"{self.path} was made by a newer dragoman (version {version}): install that one")
            connection.execute("PRAGMA synchronous = FULL")  # a revocation that was told is one, after a crash too
        except BaseException:
            connection.close()
            raise
        return connection

    def _named(self, error: sqlite3.Error) -> Exception:
        """The error that says what is wrong with the file."""
        # the primary code stands in the lower byte: https://www.sqlite.org/rescode.html
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            return DataError(f"{self.path} is no database of keys, or a damaged one ({error}): name another file")
        if code == sqlite3.SQLITE_FULL:
            return ResourceError(f"cannot write {self.path}: the disk is full. Free some space; the keys are untouched")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return ResourceError(f"another process has been writing {self.path} for {_PATIENCE:g} s: try again later")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return ResourceError(
                f"cannot open {self.path} for writing ({error}). The server needs that too, since SQLite keeps its "
                "journal beside the file: give it the rights to the file and its folder"
            )
        return ResourceError(f"cannot read or write {self.path}: {error}; is the disk full or gone?")


_ALL: WeakSet[Database] = WeakSet()


def _leave_all_to_parent() -> None:
    for database in _ALL:
        database.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all_to_parent)


def _lay_out(connection: sqlite3.Connection) -> None:
    """The empty tables; where another process has just made them, nothing."""
    connection.execute("PRAGMA journal_mode = WAL")  # whoever reads does not wait for one who writes
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in _SCHEMA.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
