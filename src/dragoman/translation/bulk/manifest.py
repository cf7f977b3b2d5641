"""`Manifest`: the record of completed shards in an output folder and of their settings, from which a run resumes."""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

from dragoman.base.errors import ConfigError
from dragoman.base.files import remove_stale_temporaries, sync, unwritable
from dragoman.base.journal import differences

MANIFEST = "manifest.jsonl"
"""The name of the file, which has one line with the settings, then one per completed shard."""


class CompletedShard(NamedTuple):
    """A completed shard. digest: of the input file. size: of the output, in bytes. counts: of each kind of note."""

    digest: str
    records: int
    size: int
    counts: Mapping[str, int]


class Manifest:
    """The manifest of an output folder, as a context manager for one process at a time.

    A line is appended and flushed to disk once its shard is in place; an incomplete line of a killed run is removed. If
    no shard was completed, the file is removed at the end.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """folder: of the output, created if missing. settings: everything that the translations depend on.

        Raises ConfigError, with the names of the differences, if the folder contains other files or shards with other
        settings, or if another process uses it; ResourceError if it cannot be written.
        """
        self.folder, self._path = folder, folder / MANIFEST
        self.completed: dict[str, CompletedShard] = {}
        self._created = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not self._path.exists():
                self._check_empty()
            self._file: BinaryIO = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise unwritable(self._path, error) from error
        try:
            self._lock()
            remove_stale_temporaries(folder)
            self._read(json.loads(json.dumps(settings)))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.completed:
            with suppress(OSError):
                self._path.unlink()
                if self._created:
                    self.folder.rmdir()
        self._file.close()

    def add(self, name: str, shard: CompletedShard) -> None:
        """Record a shard whose output is in place. Raises ResourceError."""
        self._append({"shard": name, **shard._asdict()})
        self.completed[name] = shard

    def _append(self, entry: Mapping[str, Any]) -> None:
        data = memoryview(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
            sync(self.folder)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"another process is writing to {self.folder}: wait for it, or choose another --output"
            ) from None

    def _check_empty(self) -> None:
        others = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        if others:
            raise ConfigError(
                f"{self.folder} contains {min(others)}, and no manifest to resume from: choose another --output"
            )

    def _read(self, now: Mapping[str, Any]) -> None:
        """Read the shards that earlier runs completed; start a new manifest if there are none."""
        self._file.seek(0)
        text = self._file.read()
        whole = text.rpartition(b"\n")[0] + b"\n"
        if len(whole) < len(text) or whole == b"\n":
            self._file.truncate(len(whole) if len(whole) > 1 else 0)  # the incomplete line of a killed process
        try:
            first, *others = [json.loads(line) for line in whole.splitlines() if line] or [{"settings": {}}]
            before: Mapping[str, Any] = first["settings"]
            self.completed = {
                entry["shard"]: CompletedShard(**{name: entry[name] for name in CompletedShard._fields})
                for entry in others
            }
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{self._path} is not a manifest of dragoman: choose another --output, or move it away"
            ) from None
        if not self.completed:
            self._file.truncate(0)
            self._append({"settings": now})
        elif different := differences(before, now):
            raise ConfigError(
                f"{self.folder} contains {len(self.completed):,} shard(s) with other settings: {', '.join(different)}. "
                "Resume with the same options, or choose another --output"
            )
