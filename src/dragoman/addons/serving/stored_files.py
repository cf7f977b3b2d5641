"""Translated files that clients can download, in the memory of the server or in a folder that several servers share."""

import contextlib
import json
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol

from dragoman.addons.serving.config import ServeConfig
from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.files import atomic_write, remove_stale_temporaries

_ID_BYTES = 24
_ID = re.compile(r"[A-Za-z0-9_-]{32}")  # 24 bytes in Base64
_EXTENSION = ".translated"


class StoredFile(NamedTuple):
    """A translated file. name: as it is offered to the client."""

    name: str
    content: bytes


class FileStore(Protocol):
    """A store of files. Anyone who has the id of a file, which cannot be guessed, can download it any number of times.

    The store is bounded in bytes and time. Names that clients choose never become paths. Safe for use by several
    threads.
    """

    def put(self, name: str, content: bytes) -> str:
        """Store a file and return its id. A file that is larger than the whole store is not stored.

        Raises ResourceError if it cannot be stored.
        """
        ...

    def get(self, id: str) -> StoredFile | None:
        """Return a file, or None if the id is unknown or the file has expired."""
        ...


def open_store(config: ServeConfig) -> FileStore:
    """Return the store for these settings. Raises ConfigError if the folder cannot be used."""
    capacity, seconds = config.limits.kept_bytes, config.limits.kept_seconds
    return MemoryFiles(capacity, seconds) if config.files is None else FolderFiles(config.files, capacity, seconds)


class MemoryFiles:
    """A `FileStore` in memory."""

    def __init__(self, capacity: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """capacity: bytes of all files; the oldest is deleted first. seconds: how long each file is stored."""
        self._capacity, self._seconds, self._clock = capacity, seconds, clock
        self._files: OrderedDict[str, tuple[StoredFile, float]] = OrderedDict()
        """By id, the oldest first, with the time of expiry."""
        self._lock = Lock()

    def put(self, name: str, content: bytes) -> str:
        """See `FileStore.put`."""
        id = secrets.token_urlsafe(_ID_BYTES)
        with self._lock:
            self._files[id] = StoredFile(name, content), self._clock() + self._seconds
            self._evict()
        return id

    def get(self, id: str) -> StoredFile | None:
        """See `FileStore.get`."""
        with self._lock:
            self._evict()
            file, _ = self._files.get(id, (None, 0.0))
            return file

    def _evict(self) -> None:
        size = sum(len(file.content) for file, _ in self._files.values())
        while self._files:
            file, expires = next(iter(self._files.values()))
            if size <= self._capacity and expires > self._clock():
                return
            size -= len(file.content)
            self._files.popitem(last=False)


class FolderFiles:
    """A `FileStore` in a folder, which other processes can use at the same time, also from other machines.

    Each file begins with a line of JSON that contains its name. Other files in the folder are not touched.
    """

    def __init__(self, folder: Path, capacity: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        """capacity, seconds: as in `MemoryFiles`, for the files of all processes together.

        Raises ConfigError if the folder cannot be created, or is not writable.
        """
        self._folder, self._capacity, self._seconds, self._clock = folder, capacity, seconds, clock
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_writable = os.access(folder, os.W_OK | os.X_OK)
        except OSError as error:
            raise ConfigError(f"files: the folder {folder} cannot be used ({error.strerror}): choose another") from None
        if not is_writable:
            raise ConfigError(f"files: the folder {folder} is not writable: choose another, or change its permissions")

    def put(self, name: str, content: bytes) -> str:
        """See `FileStore.put`."""
        id = secrets.token_urlsafe(_ID_BYTES)
        path = self._path(id)
        self._evict(incoming=len(content))
        if len(content) <= self._capacity:
            atomic_write(path, json.dumps({"name": name}).encode() + b"\n" + content)
            with contextlib.suppress(OSError):
                now = self._clock()
                os.utime(path, (now, now))
        return id

    def get(self, id: str) -> StoredFile | None:
        """See `FileStore.get`."""
        if not _ID.fullmatch(id):
            return None
        try:
            if self._path(id).stat().st_mtime + self._seconds <= self._clock():
                return None
            header, _, content = self._path(id).read_bytes().partition(b"\n")
            return StoredFile(str(json.loads(header)["name"]), content)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _path(self, id: str) -> Path:
        return self._folder / f"{id}{_EXTENSION}"

    def _evict(self, incoming: int) -> None:
        """Delete expired files, and the oldest until there is space for `incoming` bytes."""
        found = []
        try:
            remove_stale_temporaries(self._folder, min_age=60)
            for path in self._folder.glob(f"*{_EXTENSION}"):
                with contextlib.suppress(FileNotFoundError):  # another process has deleted it
                    if _ID.fullmatch(path.stem):
                        status = path.stat()
                        found.append((status.st_mtime, status.st_size, path))
            size = incoming + sum(size for _, size, _ in found)
            for modified, bytes_, path in sorted(found):
                if size <= self._capacity and modified + self._seconds > self._clock():
                    break
                path.unlink(missing_ok=True)
                size -= bytes_
        except OSError as error:
            raise ResourceError(f"the folder of translated files cannot be read ({error.strerror})") from None
