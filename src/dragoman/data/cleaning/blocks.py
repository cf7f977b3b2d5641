"""Blocks: a corpus in pieces that are worked on, stored and lost one by one, and fit the memory whatever its size."""

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
CHARACTERS = 1 << 22
"""Most pairs (or passages) of a block, and most characters, one of them more or less."""


def in_blocks(items: Iterator[Item]) -> Iterator[list[Item]]:
    """All items, in order; where a block ends depends on the items alone."""
    while block := list(islice(items, 1)):
        size = block[0].characters
        for item in islice(items, PAIRS - 1):
            block.append(item)
            size += item.characters
            if size >= CHARACTERS:
                break
        yield block


def block_file(folder: Path, number: int) -> Path:
    """Where the block of that number lies."""
    return folder / f"{number:06}.npz"


def write_block(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Store arrays under their names, whole or not at all."""
    stream = BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    atomic_write(path, stream.getvalue())


def read_block(path: Path, *names: str) -> list[NDArray[Any]]:
    """Some of the arrays that `write_block` stored. Raises OSError, ValueError or zipfile.BadZipFile for damage."""
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[name] for name in names]


def is_whole_block(path: Path) -> bool:
    """Whether a block lies there undamaged, from an earlier call that was killed."""
    try:
        read_block(path, "lines")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return False
    return True


def pack_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """UTF-8 of all texts one after another, and where each ends."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def unpack_texts(joined: NDArray[np.uint8], ends: NDArray[np.int64], chosen: NDArray[np.intp]) -> list[str]:
    """The texts at the places `chosen` of what `pack_texts` made."""
    content = joined.tobytes()
    starts = ends - np.diff(ends, prepend=0)
    return [
        content[start:end].decode() for start, end in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)
    ]
