"""`Suggestions`: better translations that clients propose, kept in a file to train with."""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from threading import Lock

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.serving.errors import Overloaded


class Suggestions:
    """JSON Lines with `source` and `target` (codes), `text` and `suggestion`, each whole. Safe between threads."""

    def __init__(self, path: Path, most: int) -> None:
        """most: bytes that the file may have. Raises ConfigError where it cannot be written."""
        self._path, self._most, self._lock = path, most, Lock()
        try:
            with self._opened():
                pass
        except OSError as error:
            raise ConfigError(f"suggestions cannot be kept in {path}: {error.strerror or error}") from None

    def keep(self, source: str, target: str, text: str, suggestion: str) -> None:
        """Appended, and durable. Raises Overloaded where there is no room."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {"time": now, "source": source, "target": target, "text": text, "suggestion": suggestion}
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            with self._lock, self._opened() as file:
                size = file.tell()
                if size + len(line) > self._most:
                    raise Overloaded("there is no room for suggestions at the moment", retry_after=3600)
                try:
                    if file.write(line) < len(line):
                        raise OSError(ENOSPC, os.strerror(ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(size)  # half a line may be there
                    raise
        except OSError as error:
            warn(f"a suggestion cannot be kept in {self._path}: {error.strerror or error}")
            raise Overloaded("suggestions cannot be kept at the moment", retry_after=60) from None

    def _opened(self) -> FileIO:
        """Made for its owner alone: texts of clients are in it."""
        return FileIO(os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "ab")
