"""Streaming decompression of gzip, bzip2, xz and zstd files, recognised by their first bytes."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Protocol

from dragoman.base.errors import DataError
from dragoman.base.log import info

LONGEST_MAGIC = 18
"""Number of bytes that `decompress` needs to see at once at the start of a file: the longest header of a zstd frame."""

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""File name extensions of the compressed files that can be read."""

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BZIP2 = tuple(b"BZh%d" % level + block for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90"))
_ZSTD_SKIPPABLE = tuple(bytes([byte]) + b"*M\x18" for byte in range(0x50, 0x60))
_LARGEST_WINDOW = 1 << 31
"""Maximum window of a zstd frame in bytes, as written by `zstd --ultra --long=31`."""

_USUAL_WINDOW = 1 << 27
"""Largest window in bytes that the zstd command decompresses without an option."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def is_compressed(head: bytes) -> bool:
    """Return whether a file with these first bytes can be decompressed."""
    return head.startswith((_GZIP, _XZ, *_BZIP2, _ZSTD, *_ZSTD_SKIPPABLE))


def decompress(chunks: Iterator[bytes], origin: Path | str) -> Iterator[bytes]:
    """Yield the decompressed contents of a file, or its own bytes if it is not compressed.

    chunks: the bytes of the file; the first chunk has at least `LONGEST_MAGIC` bytes unless the file is shorter.
    origin: name of the file, for messages. A file may consist of several compressed members, followed by zero bytes.
    Raises DataError if the compressed data are truncated or corrupt.
    """
    head = next(chunks, b"")
    if not is_compressed(head):
        yield head
        yield from chunks
        return
    opener = _opener(head, origin)
    member: _Decompressor | None = None
    data = head
    while True:
        while data:
            if member is None:
                if not data.strip(b"\0"):
                    break  # zeros after the last member are padding
                member = opener()
            try:
                yield member.decompress(data)
            except MemoryError:
                raise DataError(f"{origin} needs more memory to be decompressed than is available.") from None
            except Exception as error:  # each library has its own class of errors; that of bz2 is OSError
                raise DataError(f"{origin} is corrupt ({error}). Download or compress it again.") from None
            data, member = (member.unused_data, None) if member.eof else (b"", member)
        data = next(chunks, b"")
        if not data:
            break
    if member is not None:
        raise DataError(f"{origin} is truncated: its compressed data end early. Download or compress it again.")


def _opener(head: bytes, origin: Path | str) -> Callable[[], _Decompressor]:
    """Return a function that returns a decompressor of a member of a compressed file."""
    if head.startswith(_GZIP):
        return lambda: zlib.decompressobj(wbits=31)
    if head.startswith(_XZ):
        return lzma.LZMADecompressor
    if head.startswith(_BZIP2):
        return bz2.BZ2Decompressor
    return _zstd_opener(head, origin)


def _zstd_opener(head: bytes, origin: Path | str) -> Callable[[], _Decompressor]:
    """Return a function that returns a zstd decompressor. Reports a file that needs an unusual amount of memory.

    Raises DataError if the file was compressed with a dictionary, which is not stored in it.
    """
    import zstandard

    try:
        frame = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError:  # the decompressor explains what is wrong with the header
        frame = None
    if frame is not None and frame.dict_id:
        raise DataError(
            f"{origin} was compressed with the zstd dictionary {frame.dict_id}, which is a separate file. Decompress "
            f"it first: zstd -d -D DICTIONARY {origin}"
        )
    if frame is not None and _USUAL_WINDOW < frame.window_size <= _LARGEST_WINDOW:
        _report_window(str(origin), frame.window_size >> 20)
    return lambda: zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()


@cache  # reports a file once, although it is read several times
def _report_window(origin: str, mebibytes: int) -> None:
    info(
        f"{origin} was compressed with a window of {mebibytes:,} MiB (zstd --long). Reading it takes up to this amount "
        "of memory, or as much as its text if the text is shorter."
    )
