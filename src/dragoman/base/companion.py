"""`Companion`: a second file that is written along with an output and published together with it."""

import bz2
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
    """Return a function that compresses a part of a file, in the format that the suffix of `path` selects.

    The suffixes are .gz, .bz2, .xz and .zst; with any other suffix, the data are not compressed. The concatenated
    compressed parts are a valid file of the format (RFC 1952, section 2.2; RFC 8878, section 3.1).
    """
    if path.suffix == ".gz":
        return lambda data: gzip.compress(data, mtime=0)
    if path.suffix == ".bz2":
        return bz2.compress
    if path.suffix == ".xz":
        return lzma.compress
    if path.suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().compress
    return lambda data: data


class Companion:
    """A second output file. size: number of bytes written so far."""

    def __init__(self, path: Path, file: BinaryIO, size: int = 0) -> None:
        """path: final name of the file. file: open file, positioned after its first `size` bytes."""
        self.path, self.size = path, size
        self._file = file
        self._compress = compressor_for(path)

    def write(self, text: str) -> None:
        """Append `text`. Raises ResourceError if it cannot be written."""
        data = self._compress(text.encode())
        try:
            self._file.write(data)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.size += len(data)

    def sync(self) -> None:
        """Flush to disk. Raises ResourceError on failure."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error


@contextmanager
def atomic_companion(path: Path) -> Iterator[Companion]:
    """Yield a companion for an output that cannot be resumed. It appears under its final name only when complete."""
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        companion = Companion(path, file)
        yield companion
        if not companion.size:  # an empty file is not valid in a compressed format
            companion.write("")


@contextmanager
def resumable_companion(path: Path, unfinished: Path, size: int) -> Iterator[Companion]:
    """Yield a companion that can be resumed.

    path: final name of the file. unfinished: its path before `publish_companion`; size: number of valid bytes in it.
    Raises ResourceError if the file is shorter than `size` or cannot be written.
    """
    if path.exists() and not path.is_file():
        raise ResourceError(f"cannot write {path}: it exists and is not a regular file")
    try:
        file = unfinished.open("ab")
    except OSError as error:
        raise unwritable(path, error) from error
    with file:
        if file.tell() < size:
            raise ResourceError(f"{unfinished} was truncated: delete {unfinished.parent} to start again")
        file.truncate(size)
        yield Companion(path, file, size)


def publish_companion(path: Path, unfinished: Path) -> None:
    """Rename `unfinished` to `path`, unless it has already been renamed. Raises ResourceError on failure."""
    path = path.resolve()  # replace the target of a link, not the link
    if not unfinished.exists():
        return
    try:
        os.replace(unfinished, path)
        sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
