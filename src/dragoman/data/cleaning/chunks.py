"""Chunks: parts of a corpus that are processed and stored one by one, so that memory does not limit the corpus size."""

import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.files import atomic_write
from dragoman.data.corpora.items import Item

PAIRS = 1 << 15
BYTES = 1 << 22
"""Maximum numbers of pairs (or passages) and of UTF-8 bytes per chunk. The last item may exceed the number of bytes."""


def divide_into_chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Yield all items in order, in chunks. The boundaries of the chunks depend only on the items."""
    while chunk := list(islice(items, 1)):
        size = chunk[0].size
        for item in islice(items, PAIRS - 1):
            chunk.append(item)
            size += item.size
            if size >= BYTES:
                break
        yield chunk


def chunk_file(folder: Path, number: int) -> Path:
    """Return the path of the file of a chunk."""
    return folder / f"{number:06}.npz"


def write_chunk(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Store named arrays atomically."""
    stream = BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    atomic_write(path, stream.getvalue())


def read_chunk(path: Path, *names: str) -> list[NDArray[Any]]:
    """Load named arrays of a chunk. Raises OSError, ValueError, KeyError or zipfile.BadZipFile if it is damaged."""
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[name] for name in names]


def has_array(path: Path, name: str) -> bool:
    """Return whether a chunk contains an array of this name."""
    with np.load(path, allow_pickle=False) as arrays:
        return name in arrays


def is_whole_chunk(path: Path) -> bool:
    """Return whether the chunk exists, undamaged, because an earlier call stored it before it was killed."""
    try:
        read_chunk(path, "lines")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return False
    return True


_VERDICTS = "verdicts.bin"


def new_verdicts(folder: Path, count: int) -> NDArray[np.uint8]:
    """Create the memory-mapped verdicts on the `count` items of the corpus with chunks in `folder`."""
    return new_array(folder / _VERDICTS, (max(1, count),), np.uint8)


def open_verdicts(folder: Path) -> NDArray[np.uint8]:
    """Return the memory-mapped verdicts on the items of the corpus with chunks in `folder`. Kept items have 0."""
    return np.memmap(folder / _VERDICTS, dtype=np.uint8, mode="r")


def new_array(path: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Create a memory-mapped array of zeros."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # reserves space, so that a full disk does not cause a SIGBUS later
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    return np.memmap(path, dtype=dtype, mode="r+", shape=shape)


def read_texts(path: Path, side: str, chosen: NDArray[np.bool_]) -> list[str]:
    """Return the texts of one side of the chosen items of a chunk, which must have been stored.

    chosen: (n,), one per item of the chunk; False for items that break a rule by themselves.
    """
    chunk_verdicts, joined, ends = read_chunk(path, "verdicts", side, f"{side}_ends")
    return unpack_texts(joined, ends, np.flatnonzero(chosen[chunk_verdicts == 0]))


def pack_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Concatenate texts as UTF-8. Returns the bytes and the end of each text."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def unpack_texts(joined: NDArray[np.uint8], ends: NDArray[np.int64], chosen: NDArray[np.intp]) -> list[str]:
    """Return the texts with the indices `chosen` from the texts that `pack_texts` concatenated."""
    content = joined.tobytes()
    starts = ends - np.diff(ends, prepend=0)
    return [
        content[start:end].decode() for start, end in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)
    ]
