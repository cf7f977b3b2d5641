"""Token ids on disk: written once, memory-mapped ever after. Plain arrays and JSON, never pickle."""

import json
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.text.special import EOS

FORMAT = 1
HEADER = "dataset.json"
SIDES = ("source", "target")
_COUNTED_AT_ONCE = 1 << 22


class PairDataset:
    """N tokenised sentence pairs, without special symbols. Indexing gives (source ids, target ids) as 1-D arrays.

    Where the source is no text, its ids are vectors (S, n) float32.
    lengths: (N, 2) int32, tokens of source and target. lines: (N,) int64, where each pair stands in its corpus, counted
    from 1. fingerprint: a digest of all that the ids depend on.
    """

    def __init__(self, folder: Path) -> None:
        """Open what `DatasetWriter` wrote. Raises DataError when a file is missing or is not what the header says."""
        folder = Path(folder)
        try:
            header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']} instead of {FORMAT}")
            for name, (size, checksum) in header["files"].items():
                _check_file(folder / name, size, checksum)
            self.fingerprint: str = header["fingerprint"]
            self.lines: NDArray[np.int64] = np.load(folder / "lines.npy", mmap_mode="r", allow_pickle=False)
            self._offsets = [np.load(folder / f"{side}.offsets.npy", allow_pickle=False) for side in SIDES]
            self._ids = [_map(folder / f"{side}.bin", np.dtype(header["types"][side])) for side in SIDES]
            if "vectors" in header:
                self._ids[0] = self._ids[0].reshape(-1, header["vectors"])
            for offsets, ids in zip(self._offsets, self._ids, strict=True):
                if offsets.shape != (len(self.lines) + 1,) or offsets[0] != 0 or offsets[-1] != len(ids):
                    raise ValueError("the sentence offsets do not fit the ids")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"The tokenised corpus in {folder} is damaged ({error}); delete that folder.") from error
        self.lengths: NDArray[np.int32] = np.stack([np.diff(offsets) for offsets in self._offsets], 1).astype(np.int32)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, row: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a dataset of {len(self)} pairs")
        source, target = (
            ids[offsets[row] : offsets[row + 1]] for offsets, ids in zip(self._offsets, self._ids, strict=True)
        )
        return source, target

    def target_counts(self, size: int) -> NDArray[np.int64]:
        """How often each of `size` target ids occurs as a label: the end of sentence once a pair. Shape (size,)."""
        counts = np.zeros(size, dtype=np.int64)
        for start in range(0, len(self._ids[1]), _COUNTED_AT_ONCE):
            counts += np.bincount(self._ids[1][start : start + _COUNTED_AT_ONCE], minlength=size)
        counts[EOS] += len(self)
        return counts


class DatasetWriter:
    """Writes the files of a `PairDataset` into a folder, as they come; `finish` writes the header last."""

    def __init__(self, folder: Path, sizes: tuple[int, int], vectors: bool = False) -> None:
        """sizes: symbols in the source's and in the target's vocabulary; they decide how wide an id is stored.

        vectors: the source's is the number of numbers in a vector instead.
        """
        self._folder = folder
        self._types = [np.dtype(np.uint16 if size <= 1 << 16 else np.uint32) for size in sizes]
        self._vectors = sizes[0] if vectors else None
        if vectors:
            self._types[0] = np.dtype(np.float32)
        self._files: list[BinaryIO] = [(folder / f"{side}.bin").open("wb") for side in SIDES]
        self._lengths = array("q"), array("q")
        self._lines = array("q")

    def add(self, line: int, *pair: Sequence[int] | NDArray[np.float32]) -> None:
        """One pair (source ids, target ids) from line `line` of the corpus."""
        self._lines.append(line)
        for lengths, file, dtype, ids in zip(self._lengths, self._files, self._types, pair, strict=True):
            lengths.append(len(ids))
            file.write(np.asarray(ids, dtype=dtype).tobytes())

    def finish(self, fingerprint: str) -> None:
        """Complete the folder."""
        for file in self._files:
            file.close()
        np.save(self._folder / "lines.npy", np.frombuffer(self._lines, dtype=np.int64), allow_pickle=False)
        for side, lengths in zip(SIDES, self._lengths, strict=True):
            offsets = np.concatenate([[0], np.cumsum(np.frombuffer(lengths, dtype=np.int64))]).astype(np.int64)
            np.save(self._folder / f"{side}.offsets.npy", offsets, allow_pickle=False)
        names = ["lines.npy", *(f"{side}{ending}" for side in SIDES for ending in (".bin", ".offsets.npy"))]
        header = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "pairs": len(self._lines),
            "types": {side: dtype.name for side, dtype in zip(SIDES, self._types, strict=True)},
            "files": {name: [(self._folder / name).stat().st_size, _checksum(self._folder / name)] for name in names},
        }
        if self._vectors is not None:
            header["vectors"] = self._vectors
        (self._folder / HEADER).write_text(json.dumps(header, indent=1), encoding="utf-8")

    def close(self) -> None:
        """Let go of the files, finished or not."""
        for file in self._files:
            file.close()


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[np.integer[Any]]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)  # slicing a memmap object itself is slow


def _check_file(path: Path, size: int, checksum: int) -> None:
    found = path.stat().st_size
    if found != size:
        raise ValueError(f"{path.name} has {found} bytes instead of {size}")
    if _checksum(path) != checksum:
        raise ValueError(f"the checksum of {path.name} is wrong")


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value
