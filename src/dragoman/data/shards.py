"""Token ids on disk: written once, memory-mapped ever after. Plain arrays and JSON, never pickle."""

import json
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.data.sentences import Sentences
from dragoman.text.special import EOS

FORMAT = 2
HEADER = "dataset.json"
SIDES = ("source", "target")
_AT_ONCE = 1 << 22
_BYTES_AT_ONCE = 1 << 20


class PairDataset:
    """N tokenised sentence pairs, without special symbols. Indexing gives (source ids, target ids) as 1-D arrays.

    Where the source is no text, its ids are vectors (S, n) float32. All arrays are memory-mapped.
    lengths: (N, 2) int32, tokens of source and target. lines: (N,) int64, where each pair stands in its corpus, counted
    from 1. fingerprint: a digest of all that the ids depend on.
    """

    def __init__(self, folder: Path) -> None:
        """Open what `DatasetWriter` wrote. Raises DataError when a file is missing or is not what the header says."""
        folder = Path(folder)
        try:
            header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
            if header["format"] != FORMAT:
                raise DataError(f"The tokenised corpus in {folder} was written by another version of dragoman.")
            for name, (size, checksum) in header["files"].items():
                _check_file(folder / name, size, checksum)
            self.fingerprint: str = header["fingerprint"]
            self.lines: NDArray[np.int64] = _map(folder / "lines.bin", np.int64)
            self.lengths: NDArray[np.int32] = _map(folder / "lengths.bin", np.int32).reshape(-1, 2)
            self._offsets = [_map(folder / f"{side}.offsets.bin", np.int64) for side in SIDES]
            self._ids = [_map(folder / f"{side}.bin", header["types"][side]) for side in SIDES]
            if "vectors" in header:
                self._ids[0] = self._ids[0].reshape(-1, header["vectors"])
            for offsets, ids in zip(self._offsets, self._ids, strict=True):
                if not len(self.lengths) + 1 == len(self.lines) + 1 == len(offsets) or offsets[-1] != len(ids):
                    raise ValueError("the sentence offsets do not fit the ids")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"The tokenised corpus in {folder} is damaged ({error}); delete that folder.") from error

    @property
    def parts(self) -> tuple["PairDataset", ...]:
        """The corpora of a dataset: of this one, itself."""
        return (self,)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a dataset of {len(self)} pairs")
        source, target = (
            ids[offsets[row] : offsets[row + 1]] for offsets, ids in zip(self._offsets, self._ids, strict=True)
        )
        return source, target

    def take(self, rows: NDArray[np.int64]) -> tuple[Sentences, Sentences]:
        """The sources and the targets of some rows, in their order, copied."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row {rows.max()} of a dataset of {len(self)} pairs")
        source, target = (self._take(side, rows) for side in range(2))
        return source, target

    def _take(self, side: int, rows: NDArray[np.int64]) -> Sentences:
        starts, lengths = self._offsets[side][rows], self.lengths[rows, side].astype(np.int64)
        shifts = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return Sentences(self._ids[side][shifts + np.arange(len(shifts))], lengths)

    def target_counts(self, size: int) -> NDArray[np.int64]:
        """How often each of `size` target ids occurs as a label: the end of sentence once a pair. Shape (size,)."""
        counts = np.zeros(size, dtype=np.int64)
        for start in range(0, len(self._ids[1]), _AT_ONCE):
            counts += np.bincount(self._ids[1][start : start + _AT_ONCE], minlength=size)
        counts[EOS] += len(self)
        return counts


class DatasetWriter:
    """Writes the files of a `PairDataset` into a folder, as they come; `finish` writes the header last."""

    def __init__(self, folder: Path, types: tuple[np.dtype[Any], np.dtype[Any]], vectors: int | None = None) -> None:
        """types: see `id_types`. vectors: how many numbers a vector has where the source is made of vectors."""
        self._folder, self._types, self._vectors = folder, types, vectors
        names = [
            "lines.bin",
            "lengths.bin",
            *(f"{side}{ending}" for side in SIDES for ending in (".bin", ".offsets.bin")),
        ]
        self._files: dict[str, BinaryIO] = {name: (folder / name).open("wb") for name in names}
        self._written = np.zeros(2, dtype=np.int64)
        for side in SIDES:
            self._files[f"{side}.offsets.bin"].write(np.zeros(1, np.int64).tobytes())

    def add(self, lines: NDArray[np.int64], *sides: Sentences) -> None:
        """Pairs from these lines of the corpus: their sources and their targets."""
        lengths = np.stack([side.lengths for side in sides], 1)
        self._files["lines.bin"].write(lines.astype(np.int64).tobytes())
        self._files["lengths.bin"].write(lengths.astype(np.int32).tobytes())
        ends = self._written + np.cumsum(lengths, 0)
        for place, (name, side, dtype) in enumerate(zip(SIDES, sides, self._types, strict=True)):
            self._files[f"{name}.bin"].write(side.ids.astype(dtype).tobytes())
            self._files[f"{name}.offsets.bin"].write(np.ascontiguousarray(ends[:, place]).tobytes())
        self._written = self._written + lengths.sum(0)

    def finish(self, fingerprint: str, others: tuple[str, ...] = ()) -> None:
        """Complete the folder. others: names of files in it that are checked when it is opened, too."""
        self.close()
        names = [*self._files, *others]
        header = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "types": {side: dtype.name for side, dtype in zip(SIDES, self._types, strict=True)},
            "files": {name: [(self._folder / name).stat().st_size, _checksum(self._folder / name)] for name in names},
        }
        if self._vectors is not None:
            header["vectors"] = self._vectors
        (self._folder / HEADER).write_text(json.dumps(header, indent=1), encoding="utf-8")

    def close(self) -> None:
        """Let go of the files, finished or not."""
        for file in self._files.values():
            file.close()


def id_types(sizes: tuple[int, int], vectors: bool = False) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """How source and target ids are stored, by the symbols in their vocabularies; vectors: the source's are float32."""
    source, target = (np.dtype(np.uint16 if size <= 1 << 16 else np.uint32) for size in sizes)
    return np.dtype(np.float32) if vectors else source, target


def _map(path: Path, dtype: Any) -> NDArray[Any]:
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
        while chunk := file.read(_BYTES_AT_ONCE):
            value = zlib.crc32(chunk, value)
    return value
