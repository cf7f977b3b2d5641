"""`Companion`: a second file that is written along with an output and published together with it."""

import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_file, sync, unwritable

Compress = Callable[[bytes], bytes]


def compressor_for(path: Path) -> Compress:
    """What turns a part of the text into bytes of the file, by the ending of its name: .gz, .xz, .zst, or none.

    Members one after another are a file of that format (RFC 1952, section 2.2; RFC 8878, section 3.1).
    """
    if path.suffix == ".gz":
        return lambda data: gzip.compress(data, mtime=0)
    if path.suffix == ".xz":
        return lzma.compress
    if path.suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().compress
    return lambda data: data


class Companion:
    """size: bytes of it so far."""

    def __init__(self, path: Path, file: BinaryIO, size: int = 0) -> None:
        """path: the name that it will have; file: open at its end, after `size` bytes."""
        self.path, self.size = path, size
        self._file = file
        self._compress = compressor_for(path)

    def write(self, text: str) -> None:
        """Append a text. Raises ResourceError where it cannot be written."""
        data = self._compress(text.encode())
        try:
            self._file.write(data)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.size += len(data)

    def sync(self) -> None:
        """Make durable what was written. Raises ResourceError."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error


@contextmanager
def atomic_companion(path: Path) -> Iterator[Companion]:
    """One that takes its name at the end, complete or not at all, beside an output that cannot be gone on with."""
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        companion = Companion(path, file)
        yield companion
        if not companion.size:  # an empty file of no compressed members would be none of its format
            companion.write("")


@contextmanager
def resumable_companion(path: Path, text: Path, size: int) -> Iterator[Companion]:
    """One that is gone on with. text: where it lies until `published`; size: how much of that counts.

    Raises ResourceError where there is less than counts, or it cannot be written.
    """
    if path.exists() and not path.is_file():
        raise ResourceError(f"cannot write {path}: it exists and is not a regular file")
    try:
        file = text.open("ab")
    except OSError as error:
        raise unwritable(path, error) from error
    with file:
        if file.tell() < size:
            raise ResourceError(f"{text} was shortened: delete {text.parent} to begin again")
        file.truncate(size)
        yield Companion(path, file, size)


def publish_companion(path: Path, text: Path) -> None:
    """Give what was written to `text` its name, unless it has it already. Raises ResourceError."""
    path = path.resolve()  # what a link points to is replaced, not the link
    if not text.exists():
        return
    try:
        os.replace(text, path)
        sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
