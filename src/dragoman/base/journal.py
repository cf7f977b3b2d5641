"""`OutputJournal`: records the progress of an output, so that a killed process resumes without loss or repetition."""

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
"""Name of the companion file in the folder, if there is one."""
_DIGEST = 12
"""Bytes of a line's digest: the first collision is expected after 2^48 lines."""


def work_folder(output: Path) -> Path:
    """Return the folder of an unfinished output."""
    return output.with_name(f"{output.name}.partial")


@dataclass(frozen=True)
class _OutputState:
    """The progress of an output. size: bytes of text; digests: digests of all lines so far, by input.

    It is a single immutable value, so that an interrupt never sees a partial update.
    """

    lines: int = 0
    size: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    digests: Mapping[str, str] = field(default_factory=dict)


class OutputJournal:
    """A folder next to the output: `text` contains what was written, `progress.sqlite` how much of it is valid.

    kept: number of input lines that are durably completed. finished: whether only the rename of the output is missing.
    Use it as a context manager, in one process at a time. An empty folder is removed on exit.
    """

    def __init__(self, output: Path, settings: Mapping[str, Any], resume: bool = True) -> None:
        """settings: everything other than the inputs that the output depends on, as possibly nested JSON values.

        resume: continue unfinished work; if False, raise ConfigError if there is any. Raises ConfigError if the work
        was started with other settings or another process is running, ResourceError if files cannot be written.
        """
        if output.exists() and not output.is_file():
            raise ResourceError(f"cannot write {output}: it exists and is not a regular file")
        self.output = output
        self.folder = work_folder(output)
        self.kept, self.finished = 0, False
        self._text = self.folder / "text"
        self._state = _OutputState()
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
                    self._truncate()
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
        """Number of completed input lines, including those of the next `commit`."""
        return self._state.lines

    @property
    def counts(self) -> Counter[str]:
        """Counts of the outcomes of these lines."""
        return self._state.counts

    @property
    def empty(self) -> bool:
        """Whether nothing has been written yet."""
        return self._state.size == 0

    def remaining_lines(self, name: str, lines: Iterable[str], path: Path) -> Iterator[str]:
        """Yield the lines of an input that are not completed yet. name: name of the input; path: for messages.

        Undecodable bytes may be lone surrogates. Raises ConfigError if the completed lines have changed. If the output
        is finished, nothing is read.
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
                raise self._changed(f"{path} has {start + count:,} line(s), but {self.kept:,} of it are already done")
            if known.get(name) != digest.hexdigest():
                raise self._changed(f"{path} has changed: something in lines {start + 1:,} to {end:,} differs")
            start = end
        for line in iterator:
            digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
            yield line

    def first_seen(self, texts: Iterable[str]) -> list[bool]:
        """Return, for each text, whether it occurs for the first time. The next `commit` records the texts."""
        known = []
        for text in texts:
            digest = blake2b(text.encode(), digest_size=_DIGEST).digest()
            cursor = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,))
            known.append(cursor.rowcount == 1)
        return known

    def write(self, lines: int, data: bytes, counts: Mapping[str, int] | None = None) -> None:
        """Append `data`, the output of the next `lines` lines; no further lines may have been read. See `commit`.

        counts: number of lines by outcome. Raises ResourceError on failure.
        """
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise unwritable(self.output, error) from error
        state = self._state
        self._state = _OutputState(
            state.lines + lines,
            state.size + len(data),
            state.counts + Counter(counts or {}),
            {name: digest.hexdigest() for name, digest in self._inputs.items()},
        )

    def commit(self, finished: bool = False) -> None:
        """Make everything written since the last commit durable, atomically. Raises ResourceError on failure."""
        state = self._state
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
                (state.lines, state.size, json.dumps(state.counts), finished),
            )
            self._database.execute(
                "INSERT OR REPLACE INTO inputs VALUES (?, ?)", (state.lines, json.dumps(state.digests))
            )
            if self._database.in_transaction:
                self._database.execute("COMMIT")
            self.kept, self.finished = state.lines, finished
            if finished:
                self._file.close()
                return
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def publish(self, replace: bool = False) -> None:
        """Rename the finished text to the output, and remove the folder; call it after the journal is closed.

        replace: replace an existing file; otherwise raise ConfigError if there is one.
        """
        if not replace and self._text.exists() and self.output.exists():
            raise ConfigError(
                f"{self.output} was created by another process in the meantime: the text is in {self._text}; move one "
                "of them"
            )
        try:
            if self._text.exists():
                os.replace(self._text, self.output)
                sync(self.output.parent)
            shutil.rmtree(self.folder)
        except OSError as error:
            raise unwritable(self.output, error) from error

    def _begin(self, settings: Mapping[str, Any], resume: bool) -> None:
        """Lock the folder, and determine where to resume."""
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
                f"{self.folder} contains unfinished work, the first {lines:,} lines: add --resume to continue, or "
                "delete that folder to start again"
            )
        if different:
            raise ConfigError(
                f"{self.folder} contains work with other options: {', '.join(different)}. Resume with the same "
                "options, or delete that folder to start again"
            )
        self.kept, self.finished = lines, bool(finished)
        inputs = self._database.execute("SELECT lines, digests FROM inputs ORDER BY lines").fetchall()
        self._known = [(end, json.loads(digests)) for end, digests in inputs]
        self._state = _OutputState(lines, size, Counter(json.loads(counts)), self._known[-1][1])

    def _check_own(self) -> None:
        """Raise ConfigError if the folder contains other files, because it is removed at the end."""
        others = {path.name for path in self.folder.iterdir()} - {"text", COMPANION, _DATABASE, f"{_DATABASE}-journal"}
        if others:
            raise ConfigError(
                f"{self.folder} contains {min(others)}, which dragoman did not write: choose another --output, or move "
                "that folder away"
            )

    def _truncate(self) -> None:
        """Remove what was written after the last commit."""
        if self._text.stat().st_size < self._state.size:
            raise ResourceError(f"{self._text} was truncated: delete {self.folder} to start again")
        self._file.truncate(self._state.size)

    def _changed(self, what: str) -> ConfigError:
        return ConfigError(
            f"{what}. Use the text that {self.folder} was started with, or delete that folder to start again"
        )

    def _failed(self, error: sqlite3.Error) -> ConfigError | ResourceError:
        if "locked" in str(error):
            return ConfigError(f"another process is working in {self.folder}: wait for it, or choose another --output")
        return ResourceError(
            f"cannot use {self.folder / _DATABASE}: {error}. Free some space; or, if the file is damaged, "
            f"delete {self.folder} to start again"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two nested settings, each with both values."""
    one, other = _flat(before), _flat(now)
    return [
        f"{name} (was {one.get(name)!r}, now {other.get(name)!r})"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted names."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return found
