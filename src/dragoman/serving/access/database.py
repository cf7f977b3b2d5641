"""`Database`: the SQLite file of the keys, for several threads and processes at once."""

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
"""In the file's header (SQLite's application_id), so that no other program's database is taken for one of keys."""
_VERSION = 1
_PATIENCE = 10.0
"""Seconds that a process waits for another one that writes; a write takes milliseconds."""

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
    """A connection that is made when it is first needed, and made anew in a process that was forked."""

    def __init__(self, path: Path | str, create: bool) -> None:
        """create: make the file, readable by its owner alone, where there is none.

        Raises ConfigError where there is none and none is to be made, and what `reading` raises.
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
            raise ResourceError(f"cannot open {self.path}: {error.strerror}. Mind the rights of its folders") from None
        if not is_there:
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
                yield self._connected()
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
            # the journal is emptied at once: then the file alone is all there is, to copy it or to put another in its
            # place. Where somebody reads, or the disk is full, a later one does it: what is written is durable
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """The file is closed; it is opened again when something is asked."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _make_file(self) -> None:
        """Whole at once, so that no other process meets half of it; where another one was faster, that one's stays."""
        try:
            descriptor, name = tempfile.mkstemp(".partial", f".{self.path.name}.", self.path.parent)
        except OSError as error:
            raise unwritable(self.path, error) from error
        os.close(descriptor)  # its rights are its owner's alone, and SQLite gives the same ones to files beside it
        try:
            with closing(sqlite3.connect(name, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")  # whoever reads does not wait for one who writes
                connection.executescript(_SCHEMA)
            sync(Path(name))
            with suppress(FileExistsError):
                os.link(name, self.path)
            sync(self.path.parent)
        except sqlite3.Error as error:
            raise self._named(error) from error
        except OSError as error:
            raise unwritable(self.path, error) from error
        finally:
            os.unlink(name)

    def _look(self) -> None:
        """What SQLite would not say of the file."""
        mode = self.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{self.path} is no regular file: name the database of keys")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            warn(f"others than its owner may read or write {self.path}, which holds keys: chmod 600 {self.path}")

    def leave_to_parent(self) -> None:
        """In a child process: what was opened before is its parent's. SQLite wants it neither used nor closed there."""
        self._lock = threading.Lock()  # another thread, which is not here, may have held it
        self._inherited, self._connection = self._connection or self._inherited, None

    def _connected(self) -> sqlite3.Connection:
        """To the file that has the name now: keys of one that was replaced open nothing."""
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
                raise DataError(f"{self.path} is empty, or another program's: name another file for the keys")
            if version != _VERSION:
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
