"""`Suggestions`: stores the translations that clients suggest, as training data."""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from threading import Lock

from dragoman.addons.serving.errors import Overloaded
from dragoman.base.errors import ConfigError
from dragoman.base.log import warn


class Suggestions:
    """A JSON Lines file with `time`, `source` and `target` (codes), `text` and `suggestion`. Thread-safe.

    A line is written completely or not at all.
    """

    def __init__(self, path: Path, capacity: int) -> None:
        """capacity: the maximum file size in bytes. Raises ConfigError if the file cannot be written."""
        self._path, self._capacity, self._lock = path, capacity, Lock()
        try:
            with self._open():
                pass
        except OSError as error:
            raise ConfigError(f"suggestions cannot be stored in {path}: {error.strerror or error}") from None

    def add(self, source: str, target: str, text: str, suggestion: str) -> None:
        """Append a suggestion and flush it to disk. Raises Overloaded if the file is full or cannot be written."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {"time": now, "source": source, "target": target, "text": text, "suggestion": suggestion}
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            with self._lock, self._open() as file:
                size = file.tell()
                if size + len(line) > self._capacity:
                    raise Overloaded("no further suggestions can be stored at the moment", retry_after=3600)
                try:
                    if file.write(line) < len(line):
                        raise OSError(ENOSPC, os.strerror(ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(size)  # a part of the line may have been written
                    raise
        except OSError as error:
            warn(f"a suggestion cannot be stored in {self._path}: {error.strerror or error}")
            raise Overloaded("suggestions cannot be stored at the moment", retry_after=60) from None

    def _open(self) -> FileIO:
        """Open the file. Only its owner can read it, because it contains the texts of clients."""
        return FileIO(os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "ab")
