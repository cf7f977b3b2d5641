"""`OutputJournal`: records the progress of an output, so that an interrupted process can resume without repetition."""

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
"""Name of the companion file in the work folder, if there is one."""
_DIGEST_BYTES = 12
"""Size of a line's digest. The first collision is expected after 2^48 lines."""


def work_folder(output: Path) -> Path:
    """Return the folder that contains the unfinished output and its journal."""
    return output.with_name(f"{output.name}.partial")


@dataclass(frozen=True)
class _OutputState:
    """The progress of an output, an immutable value so that an interrupt cannot leave a partial update.

    lines: number of completed input lines; size: number of bytes of text; counts: numbers of lines by outcome;
    digests: digest of all lines so far, by input name.
    """

    lines: int = 0
    size: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    digests: Mapping[str, str] = field(default_factory=dict)


class OutputJournal:
    """A work folder next to the output. Its file `text` contains the output, of which `progress.sqlite` records the
    number of valid bytes.

    committed: number of input lines that are durably completed. finished: whether the output is complete and only has
    to be renamed. Use the journal as a context manager, in one process at a time. An empty folder is removed on exit.
    """

    def __init__(self, output: Path, settings: Mapping[str, Any], resume: bool = True) -> None:
        """settings: all settings that affect the output, as JSON values, which may be nested.

        resume: whether to continue unfinished work; if False, unfinished work raises ConfigError. Raises ConfigError
        if the work was started with different settings or another process is using the folder, and ResourceError if
        files cannot be written.
        """
        if output.exists() and not output.is_file():
            raise ResourceError(f"cannot write {output}: it exists and is not a regular file")
        self.output = output
        self.folder = work_folder(output)
        self.committed, self.finished = 0, False
        self._text = self.folder / "text"
        self._state = _OutputState()
        self._inputs: dict[str, Any] = {}
        self._committed_digests: list[tuple[int, dict[str, str]]] = []
        with ExitStack() as stack:
            try:
                self.folder.mkdir(exist_ok=True)
                self._check_contents()
                self._database = sqlite3.connect(self.folder / _DATABASE, isolation_level=None, timeout=0)
                stack.callback(self._database.close)
                self._restore(settings, resume)
                if not self.finished:
                    self._file = stack.enter_context(self._text.open("ab", buffering=0))
                    self._discard_uncommitted()
            except OSError as error:
                raise unwritable(output, error) from error
            except sqlite3.Error as error:
                raise self._database_error(error) from error
            stack.pop_all()

    def __enter__(self) -> "OutputJournal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.finished:
            self._file.close()
            if not self.committed:
                shutil.rmtree(self.folder, ignore_errors=True)
        self._database.close()

    @property
    def lines(self) -> int:
        """Number of completed input lines, including those not committed yet."""
        return self._state.lines

    @property
    def counts(self) -> Counter[str]:
        """Numbers of completed input lines by outcome."""
        return self._state.counts

    @property
    def is_empty(self) -> bool:
        """True if no output has been written yet."""
        return self._state.size == 0

    def remaining_lines(self, name: str, lines: Iterable[str], path: Path) -> Iterator[str]:
        """Yield the lines of an input that are not completed yet.

        name: name of the input in the journal; path: its path, for messages. Lone surrogates may represent undecodable
        bytes. Raises ConfigError if the completed lines have changed. If the output is finished, the input is not read.
        """
        if self.finished:
            return
        digest = self._inputs[name] = blake2b(digest_size=16)
        iterator, start = iter(lines), 0
        for end, digests in self._committed_digests:
            count = 0
            for line in islice(iterator, end - start):
                digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
                count += 1
            if start + count < end:
                raise self._input_error(
                    f"{path} has {start + count:,} line(s), but {self.committed:,} lines are already done"
                )
            if digests.get(name) != digest.hexdigest():
                raise self._input_error(f"{path} has changed between lines {start + 1:,} and {end:,}")
            start = end
        for line in iterator:
            digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
            yield line

    def first_occurrences(self, texts: Iterable[str]) -> list[bool]:
        """Return, for each text, whether it occurs for the first time. The next `commit` records the texts."""
        is_first = []
        for text in texts:
            digest = blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
            cursor = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,))
            is_first.append(cursor.rowcount == 1)
        return is_first

    def write(self, lines: int, data: bytes, counts: Mapping[str, int] | None = None) -> None:
        """Append `data`, the output for the next `lines` input lines; only these may have been read from the inputs.

        counts: numbers of lines by outcome. The data become durable with the next `commit`. Raises ResourceError on
        failure.
        """
        remaining = memoryview(data)
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
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
        """Make everything written since the last commit durable, atomically.

        finished: whether the output is complete. Raises ResourceError on failure.
        """
        state = self._state
        try:
            os.fsync(self._file.fileno())
            if not self.committed:
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
            self.committed, self.finished = state.lines, finished
            if finished:
                self._file.close()
                return
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise self._database_error(error) from error

    def publish(self, replace: bool = False) -> None:
        """Rename the finished text to the output and remove the work folder. Call this after the journal is closed.

        replace: whether to replace an existing file; if False, an existing file raises ConfigError.
        """
        if not replace and self._text.exists() and self.output.exists():
            raise ConfigError(
                f"{self.output} was created by another process in the meantime. The new text is in {self._text}: move "
                "one of the two files"
            )
        try:
            if self._text.exists():
                os.replace(self._text, self.output)
                sync(self.output.parent)
            shutil.rmtree(self.folder)
        except OSError as error:
            raise unwritable(self.output, error) from error

    def _restore(self, settings: Mapping[str, Any], resume: bool) -> None:
        """Lock the work folder and restore the state of the last commit."""
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES.split(";")[:-1]:
            self._database.execute(statement)
        current = json.dumps(settings, sort_keys=True)
        row = self._database.execute("SELECT settings, lines, bytes, counts, finished FROM state").fetchone()
        previous, lines, size, counts, finished = row or (current, 0, 0, "{}", 0)
        changes = differences(json.loads(previous), json.loads(current))
        is_published = finished and not self._text.exists()
        if not lines or (is_published and (changes or not resume)):
            for table in ("state", "inputs", "seen"):
                self._database.execute(f"DELETE FROM {table}")
            self._database.execute("INSERT INTO state VALUES (1, ?, 0, 0, '{}', 0)", (current,))
            return
        if not resume:
            raise ConfigError(
                f"{self.folder} contains unfinished work, the first {lines:,} lines: add --resume to continue, or "
                "delete that folder to start again"
            )
        if changes:
            raise ConfigError(
                f"{self.folder} contains work with other options: {', '.join(changes)}. Resume with the same "
                "options, or delete that folder to start again"
            )
        self.committed, self.finished = lines, bool(finished)
        inputs = self._database.execute("SELECT lines, digests FROM inputs ORDER BY lines").fetchall()
        self._committed_digests = [(end, json.loads(digests)) for end, digests in inputs]
        self._state = _OutputState(lines, size, Counter(json.loads(counts)), self._committed_digests[-1][1])

    def _check_contents(self) -> None:
        """Raise ConfigError if the work folder contains other files, because `publish` deletes it."""
        others = {path.name for path in self.folder.iterdir()} - {"text", COMPANION, _DATABASE, f"{_DATABASE}-journal"}
        if others:
            raise ConfigError(
                f"{self.folder} contains {min(others)}, which dragoman did not write: choose another --output, or move "
                "that folder away"
            )

    def _discard_uncommitted(self) -> None:
        """Remove the text that was written after the last commit."""
        if self._text.stat().st_size < self._state.size:
            raise ResourceError(f"{self._text} was truncated: delete {self.folder} to start again")
        self._file.truncate(self._state.size)

    def _input_error(self, change: str) -> ConfigError:
        return ConfigError(
            f"{change}. Use the text that {self.folder} was started with, or delete that folder to start again"
        )

    def _database_error(self, error: sqlite3.Error) -> ConfigError | ResourceError:
        if "locked" in str(error):
            return ConfigError(f"another process is working in {self.folder}: wait for it, or choose another --output")
        return ResourceError(
            f"cannot use {self.folder / _DATABASE}: {error}. Free some space. If the file is damaged, delete "
            f"{self.folder} to start again"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one text per setting that differs, with its dotted name and both values."""
    old, new = _flatten(before), _flatten(now)
    return [
        f"{name} (was {old.get(name)!r}, now {new.get(name)!r})"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted names."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
