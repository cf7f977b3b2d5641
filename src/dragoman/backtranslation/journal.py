"""`Journal`: how far a back-translation has come, so that a killed one goes on: nothing twice, nothing lost."""

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.files import unwritable

_TABLES = """
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), settings TEXT, lines INTEGER, bytes INTEGER,
                                  counts TEXT, finished INTEGER);
CREATE TABLE IF NOT EXISTS seen (digest BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_DIGEST = 12
"""Bytes of a line's digest: 2^48 lines before two different ones are expected to be taken for the same."""


def work_folder(output: Path) -> Path:
    """Where the work on an output lies until it is done."""
    return output.with_name(f"{output.name}.partial")


class Journal:
    """A folder beside the output: `text` holds what is written so far, `progress.sqlite` says how much of it counts.

    lines: of the input that are done with; counts: what became of them. Open it with `with`; one process at a time.
    """

    def __init__(self, output: Path, settings: dict[str, Any]) -> None:
        """settings: all that the output depends on. Raises ConfigError where the folder belongs to others."""
        self.output = output
        self.folder = work_folder(output)
        self.lines, self.counts, self.finished = 0, Counter[str](), False
        self._bytes = 0
        self._file: BinaryIO | None = None
        try:
            self.folder.mkdir(exist_ok=True)
            self._database = sqlite3.connect(self.folder / "progress.sqlite", isolation_level=None, timeout=0)
            self._begin(settings)
            if not self.finished:
                self._file = (self.folder / "text").open("ab")
                self._file.truncate(self._bytes)
        except OSError as error:
            raise unwritable(output, error) from error
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        self._database.close()

    def new(self, texts: Iterable[str]) -> list[bool]:
        """Whether each text is the first of its kind. What is asked here is kept by the next `commit`."""
        known = []
        for text in texts:
            digest = blake2b(text.encode(), digest_size=_DIGEST).digest()
            cursor = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,))
            known.append(cursor.rowcount == 1)
        return known

    def commit(self, lines: int, data: bytes, counts: Counter[str], finished: bool = False) -> None:
        """Durably take in `data`, made of the next `lines` lines of input; both, or after a kill none of both."""
        assert self._file is not None, "it is finished"
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self.output, error) from error
        self.lines += lines
        self._bytes += len(data)
        self.counts.update(counts)
        self.finished = finished
        try:
            self._database.execute(
                "UPDATE state SET lines = ?, bytes = ?, counts = ?, finished = ?",
                (self.lines, self._bytes, json.dumps(self.counts), finished),
            )
            self._database.execute("COMMIT")
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def publish(self) -> None:
        """Give the finished text its name, and remove the folder. Raises ConfigError where the name is taken."""
        text = self.folder / "text"
        if text.exists() and self.output.exists():
            raise ConfigError(
                f"{self.output} was made by somebody else meanwhile: the pairs are in {text}; move one away"
            )
        try:
            if text.exists():
                os.replace(text, self.output)
                folder = os.open(self.output.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
            shutil.rmtree(self.folder)
        except OSError as error:
            raise unwritable(self.output, error) from error

    def _begin(self, settings: dict[str, Any]) -> None:
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES.split(";")[:-1]:
            self._database.execute(statement)
        now = json.dumps(settings, sort_keys=True)
        self._database.execute("INSERT OR IGNORE INTO state VALUES (1, ?, 0, 0, '{}', 0)", (now,))
        row = self._database.execute("SELECT settings, lines, bytes, counts, finished FROM state").fetchone()
        before = json.loads(row[0])
        different = sorted(key for key in {*settings, *before} if before.get(key) != json.loads(now).get(key))
        if different:
            shown = ", ".join(f"{key} (was {before.get(key)!r}, now {settings.get(key)!r})" for key in different)
            self._database.close()
            raise ConfigError(
                f"{self.folder} holds a back-translation begun otherwise: {shown}. Go on with its own options, or "
                "delete that folder to begin again"
            )
        self.lines, self._bytes, self.finished = int(row[1]), int(row[2]), bool(row[4])
        self.counts.update(json.loads(row[3]))

    def _failed(self, error: sqlite3.Error) -> ConfigError | ResourceError:
        if "locked" in str(error):
            return ConfigError(f"another process is at work in {self.folder}: wait for it, or choose another --output")
        return ResourceError(
            f"cannot use {self.folder / 'progress.sqlite'}: {error}. Free some space; or, if the file is damaged, "
            f"delete {self.folder} to begin again"
        )
