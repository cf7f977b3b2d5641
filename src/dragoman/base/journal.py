"""`OutputJournal`: how far an output has come, so that a killed process goes on: nothing twice, nothing lost."""

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.files import sync, unwritable

_TABLES = """
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), settings TEXT, lines INTEGER, bytes INTEGER,
                                  counts TEXT, finished INTEGER);
CREATE TABLE IF NOT EXISTS inputs (lines INTEGER PRIMARY KEY, digests TEXT);
CREATE TABLE IF NOT EXISTS seen (digest BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_DATABASE = "progress.sqlite"
COMPANION = "companion"
"""What may lie in the folder beside the text: a second file that is written along."""
_DIGEST = 12
"""Bytes of a line's digest: 2^48 lines before two different ones are expected to be taken for the same."""


def work_folder(output: Path) -> Path:
    """Where the work on an output lies until it is done."""
    return output.with_name(f"{output.name}.partial")


@dataclass(frozen=True)
class _Place:
    """How far it is. size: of the text, in bytes; digests: of all lines so far, by input.

    One value, so that an interrupt finds all of it or nothing.
    """

    lines: int = 0
    size: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    digests: Mapping[str, str] = field(default_factory=dict)


class OutputJournal:
    """A folder beside the output: `text` holds what is written so far, `progress.sqlite` says how much of it counts.

    kept: lines of input that are done with, durably. finished: whether only its name is missing to the output. Open it
    with `with`; one process at a time. A folder that keeps nothing goes when it is closed.
    """

    def __init__(self, output: Path, settings: Mapping[str, Any], resume: bool = True) -> None:
        """settings: all that the output depends on beside its inputs, as values that JSON keeps; they may be nested.

        resume: go on with what is there; False: raise ConfigError where there is something. Raises ConfigError too
        where it was begun with other settings or another process is at work, ResourceError where it cannot be written.
        """
        if output.exists() and not output.is_file():
            raise ResourceError(f"cannot write {output}: it exists and is not a regular file")
        self.output = output
        self.folder = work_folder(output)
        self.kept, self.finished = 0, False
        self._text = self.folder / "text"
        self._place = _Place()
        self._inputs: dict[str, Any] = {}
        self._known: list[tuple[int, dict[str, str]]] = []
        with ExitStack() as stack:
            try:
                self.folder.mkdir(exist_ok=True)
                self._check_own()
                self._database = sqlite3.connect(self.folder / _DATABASE, isolation_level=None, timeout=0)
                stack.callback(self._database.close)
                self._begin(settings, resume)
                if not self.finished:
                    self._file = stack.enter_context(self._text.open("ab", buffering=0))
                    self._cut()
            except OSError as error:
                raise unwritable(output, error) from error
            except sqlite3.Error as error:
                raise self._failed(error) from error
            stack.pop_all()

    def __enter__(self) -> "OutputJournal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.finished:
            self._file.close()
            if not self.kept:
                shutil.rmtree(self.folder, ignore_errors=True)
        self._database.close()

    @property
    def lines(self) -> int:
        """Of the input that are done with, those included that the next `commit` keeps."""
        return self._place.lines

    @property
    def counts(self) -> Counter[str]:
        """What became of these lines."""
        return self._place.counts

    @property
    def empty(self) -> bool:
        """Whether nothing was written yet."""
        return self._place.size == 0

    def remaining_lines(self, name: str, lines: Iterable[str], path: Path) -> Iterator[str]:
        """The lines of an input after those that are done with. name: which of the inputs it is; path: for messages.

        Undecodable bytes may be lone surrogates. Raises ConfigError where the lines that are done with are others now.
        Where all is finished, none is read.
        """
        if self.finished:
            return
        digest = self._inputs[name] = blake2b(digest_size=16)
        iterator, start = iter(lines), 0
        for end, known in self._known:
            count = 0
            for line in islice(iterator, end - start):
                digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
                count += 1
            if start + count < end:
                raise self._changed(f"{path} has {start + count:,} line(s), but {self.kept:,} of it are done")
            if known.get(name) != digest.hexdigest():
                raise self._changed(f"{path} is another text now: something in lines {start + 1:,} to {end:,} differs")
            start = end
        for line in iterator:
            digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
            yield line

    def first_seen(self, texts: Iterable[str]) -> list[bool]:
        """Whether each text is the first of its kind. What is asked here is kept by the next `commit`."""
        known = []
        for text in texts:
            digest = blake2b(text.encode(), digest_size=_DIGEST).digest()
            cursor = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,))
            known.append(cursor.rowcount == 1)
        return known

    def write(self, lines: int, data: bytes, counts: Mapping[str, int] | None = None) -> None:
        """Append `data`, made of the next `lines` lines, no more of which may have been read. `commit` keeps it.

        counts: what became of these lines. Raises ResourceError.
        """
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise unwritable(self.output, error) from error
        place = self._place
        self._place = _Place(
            place.lines + lines,
            place.size + len(data),
            place.counts + Counter(counts or {}),
            {name: digest.hexdigest() for name, digest in self._inputs.items()},
        )

    def commit(self, finished: bool = False) -> None:
        """Make durable what was written since the last time, or after a kill nothing of it. Raises ResourceError."""
        place = self._place
        try:
            os.fsync(self._file.fileno())
            if not self.kept:
                sync(self.folder)
                sync(self.folder.parent)
        except OSError as error:
            raise unwritable(self.output, error) from error
        try:
            self._database.execute(
                "UPDATE state SET lines = ?, bytes = ?, counts = ?, finished = ?",
                (place.lines, place.size, json.dumps(place.counts), finished),
            )
            self._database.execute(
                "INSERT OR REPLACE INTO inputs VALUES (?, ?)", (place.lines, json.dumps(place.digests))
            )
            if self._database.in_transaction:
                self._database.execute("COMMIT")
            self.kept, self.finished = place.lines, finished
            if finished:
                self._file.close()
                return
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def publish(self, replace: bool = False) -> None:
        """Give the finished text its name, and remove the folder; call it after the journal is closed.

        replace: an older file of that name; else it raises ConfigError where the name is taken.
        """
        if not replace and self._text.exists() and self.output.exists():
            raise ConfigError(
                f"{self.output} was made by somebody else meanwhile: the text is in {self._text}; move one away"
            )
        try:
            if self._text.exists():
                os.replace(self._text, self.output)
                sync(self.output.parent)
            shutil.rmtree(self.folder)
        except OSError as error:
            raise unwritable(self.output, error) from error

    def _begin(self, settings: Mapping[str, Any], resume: bool) -> None:
        """Lock the folder, and find out where to go on."""
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES.split(";")[:-1]:
            self._database.execute(statement)
        now = json.dumps(settings, sort_keys=True)
        row = self._database.execute("SELECT settings, lines, bytes, counts, finished FROM state").fetchone()
        before, lines, size, counts, finished = row or (now, 0, 0, "{}", 0)
        different = differences(json.loads(before), json.loads(now))
        published = finished and not self._text.exists()
        if not lines or (published and (different or not resume)):
            for table in ("state", "inputs", "seen"):
                self._database.execute(f"DELETE FROM {table}")
            self._database.execute("INSERT INTO state VALUES (1, ?, 0, 0, '{}', 0)", (now,))
            return
        if not resume:
            raise ConfigError(
                f"{self.folder} holds unfinished work, the first {lines:,} lines: add --resume to go on with it, or "
                "delete that folder to begin again"
            )
        if different:
            raise ConfigError(
                f"{self.folder} holds work begun otherwise: {', '.join(different)}. Go on with its own options, or "
                "delete that folder to begin again"
            )
        self.kept, self.finished = lines, bool(finished)
        inputs = self._database.execute("SELECT lines, digests FROM inputs ORDER BY lines").fetchall()
        self._known = [(end, json.loads(digests)) for end, digests in inputs]
        self._place = _Place(lines, size, Counter(json.loads(counts)), self._known[-1][1])

    def _check_own(self) -> None:
        """Raises ConfigError for a folder of somebody else's, which must not be removed in the end."""
        others = {path.name for path in self.folder.iterdir()} - {"text", COMPANION, _DATABASE, f"{_DATABASE}-journal"}
        if others:
            raise ConfigError(
                f"{self.folder} holds {min(others)}, which dragoman did not write: choose another --output, or move "
                "that folder away"
            )

    def _cut(self) -> None:
        """Take away what was written after the last commit."""
        if self._text.stat().st_size < self._place.size:
            raise ResourceError(f"{self._text} was shortened: delete {self.folder} to begin again")
        self._file.truncate(self._place.size)

    def _changed(self, what: str) -> ConfigError:
        return ConfigError(
            f"{what}. Give the text that {self.folder} was begun with, or delete that folder to begin again"
        )

    def _failed(self, error: sqlite3.Error) -> ConfigError | ResourceError:
        if "locked" in str(error):
            return ConfigError(f"another process is at work in {self.folder}: wait for it, or choose another --output")
        return ResourceError(
            f"cannot use {self.folder / _DATABASE}: {error}. Free some space; or, if the file is damaged, "
            f"delete {self.folder} to begin again"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What two nested settings do not have in common, each with both values."""
    one, other = _flat(before), _flat(now)
    return [
        f"{name} (was {one.get(name)!r}, now {other.get(name)!r})"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return found
