"""`Manifest`: records the completed shards and the settings of an output folder, so that a run can be resumed."""

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
"""Name of the manifest file. Its first line contains the settings; each other line describes a completed shard."""


class CompletedShard(NamedTuple):
    """A completed shard. digest: digest of the input file. size: size of the output file in bytes. counts: number of
    records by warning.
    """

    digest: str
    records: int
    size: int
    counts: Mapping[str, int]


class Manifest:
    """The manifest of an output folder, as a context manager. Only one process at a time can open it.

    When a shard is complete, its line is appended and flushed to disk. An incomplete line of a killed run is removed.
    If no shard was completed, the file is removed on exit.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """folder: the output folder, created if missing. settings: all values that determine the translations.

        Raises ConfigError if the folder contains other files, if its shards have other settings (the message names
        them), or if another process uses the folder; ResourceError if the folder cannot be written.
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
        """Record a shard whose output is complete. Raises ResourceError if the file cannot be written."""
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
                f"another process is writing to {self.folder}: wait until it ends, or choose another --output"
            ) from None

    def _check_empty(self) -> None:
        others = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        if others:
            raise ConfigError(f"{self.folder} contains {min(others)}, but no manifest: choose another --output")

    def _read(self, settings: Mapping[str, Any]) -> None:
        """Read the shards that earlier runs completed. Starts a new manifest if there are no such shards."""
        self._file.seek(0)
        text = self._file.read()
        complete = text.rpartition(b"\n")[0] + b"\n"
        if len(complete) < len(text) or complete == b"\n":
            self._file.truncate(len(complete) if len(complete) > 1 else 0)  # the incomplete line of a killed process
        try:
            first, *others = [json.loads(line) for line in complete.splitlines() if line] or [{"settings": {}}]
            recorded: Mapping[str, Any] = first["settings"]
            self.completed = {
                entry["shard"]: CompletedShard(**{name: entry[name] for name in CompletedShard._fields})
                for entry in others
            }
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{self._path} is not a dragoman manifest: choose another --output, or move the file"
            ) from None
        if not self.completed:
            self._file.truncate(0)
            self._append({"settings": settings})
        elif different := differences(recorded, settings):
            raise ConfigError(
                f"{self.folder} contains {len(self.completed):,} shard(s) with other settings: {', '.join(different)}. "
                "Resume with the same options, or choose another --output"
            )
