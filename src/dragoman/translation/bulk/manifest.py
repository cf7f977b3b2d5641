"""`Manifest`: which shards of an output folder are done, and with what settings; a second run goes on from it."""

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
"""Its file: a line with the settings, then one a shard that is done."""


class Done(NamedTuple):
    """A shard that is done. digest: of the file that was read; size: of the output, in bytes; counts: what had to be
    done about its records, of each kind how many."""

    digest: str
    records: int
    size: int
    counts: Mapping[str, int]


class Manifest:
    """A line is appended when its shard has its name, and made durable; what a kill leaves of a line is cut off.

    Open it with `with`; one process at a time. Where nothing was done, it goes when it is closed.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """folder: of the output, made if it is not there; settings: all that the translations depend on.

        Raises ConfigError where the folder holds something else, work of other settings, each named, or another
        process is at work; ResourceError where it cannot be written.
        """
        self.folder, self._path = folder, folder / MANIFEST
        self.done: dict[str, Done] = {}
        self._made = not folder.exists()
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
        if not self.done:
            with suppress(OSError):
                self._path.unlink()
                if self._made:
                    self.folder.rmdir()
        self._file.close()

    def add(self, name: str, done: Done) -> None:
        """A shard has its name. Raises ResourceError."""
        self._append({"shard": name, **done._asdict()})
        self.done[name] = done

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
                f"another process is at work in {self.folder}: wait for it, or choose another --output"
            ) from None

    def _check_empty(self) -> None:
        others = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        if others:
            raise ConfigError(
                f"{self.folder} holds {min(others)}, which is not of a work to go on with: choose another --output"
            )

    def _read(self, now: Mapping[str, Any]) -> None:
        """What earlier runs did; begins anew where they did nothing."""
        self._file.seek(0)
        text = self._file.read()
        whole = text.rpartition(b"\n")[0] + b"\n"
        if len(whole) < len(text) or whole == b"\n":
            self._file.truncate(len(whole) if len(whole) > 1 else 0)  # the rest of a killed process's line
        try:
            first, *others = [json.loads(line) for line in whole.splitlines() if line] or [{"settings": {}}]
            before: Mapping[str, Any] = first["settings"]
            self.done = {entry["shard"]: Done(**{name: entry[name] for name in Done._fields}) for entry in others}
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{self._path} is no manifest of dragoman's: choose another --output, or move it away"
            ) from None
        if not self.done:
            self._file.truncate(0)
            self._append({"settings": now})
        elif different := differences(before, now):
            raise ConfigError(
                f"{self.folder} holds work begun otherwise, {len(self.done):,} shard(s): {', '.join(different)}. Go on "
                "with its own options, or choose another --output"
            )
