"""Tokenised corpora on disk, written once and memory-mapped afterwards, as plain arrays and JSON, never pickle."""

import json
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.files import unwritable
from dragoman.text.symbols import BOS, EOS


@dataclass(frozen=True)
class Sentences:
    """Concatenated sentences.

    ids: (sum of lengths,) integers, or (sum of lengths, n) float32 vectors; lengths: (B,) int64, lengths of the
    sentences.
    """

    ids: NDArray[Any]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int] | NDArray[Any]]) -> "Sentences":
        """Concatenate a list of at least one sentence."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        shape = next((np.shape(sentence) for sentence in sentences if len(sentence)), (0,))
        kind = np.int64 if len(shape) == 1 else np.float32
        filled = [np.asarray(sentence, dtype=kind) for sentence in sentences if len(sentence)]
        return cls(np.concatenate([np.zeros((0, *shape[1:]), kind), *filled]), lengths)


FORMAT = 2
HEADER = "dataset.json"
_AT_ONCE = 1 << 22
_BYTES_AT_ONCE = 1 << 20


class Dataset:
    """N tokenised rows with one or more sides, such as sentence pairs, without special symbols; memory-mapped.

    Indexing a row returns the ids of each side as 1-D arrays; a source of feature vectors is (S, n) float32. sides:
    names of the sides. lengths: (N, sides) int32, numbers of tokens. lines: (N,) int64, line of each row in its corpus,
    from 1. fingerprint: digest of everything that determines the ids. special: number of special symbols that a batch
    adds to each side of a row.
    """

    special: ClassVar[int] = 1

    def __init__(self, folder: Path) -> None:
        """Open a folder of `DatasetWriter`. Raises DataError if a file is missing or does not match the header."""
        folder = Path(folder)
        try:
            header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
            if header["format"] != FORMAT:
                raise DataError(f"The tokenised corpus in {folder} was written by another version of dragoman.")
            for name, (size, checksum) in header["files"].items():
                _check_file(folder / name, size, checksum)
            self.fingerprint: str = header["fingerprint"]
            self.sides = tuple(header["types"])
            self.lines: NDArray[np.int64] = _map(folder / "lines.bin", np.int64)
            self.lengths: NDArray[np.int32] = _map(folder / "lengths.bin", np.int32).reshape(-1, len(self.sides))
            self._offsets = [_map(folder / f"{side}.offsets.bin", np.int64) for side in self.sides]
            self._ids = [_map(folder / f"{side}.bin", dtype) for side, dtype in header["types"].items()]
            if "vectors" in header:
                self._ids[0] = self._ids[0].reshape(-1, header["vectors"])
            for offsets, ids in zip(self._offsets, self._ids, strict=True):
                if not len(self.lengths) + 1 == len(self.lines) + 1 == len(offsets) or offsets[-1] != len(ids):
                    raise ValueError("the sentence offsets do not match the ids")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"The tokenised corpus in {folder} is damaged ({error}); delete that folder.") from error

    @property
    def parts(self) -> tuple["Dataset", ...]:
        """The datasets that it consists of: only itself."""
        return (self,)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[NDArray[Any], ...]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a dataset of {len(self)} rows")
        return tuple(side.ids for side in self.take(np.array([row])))

    def __str__(self) -> str:
        """Return the amount of data, for messages."""
        return f"{len(self):,} tokenised pairs"

    @property
    def amount(self) -> int:
        """The size used for temperature sampling."""
        return len(self)

    def take(self, rows: NDArray[np.int64]) -> tuple[Sentences, ...]:
        """Copy rows. Returns each side, in the given order."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row {rows.max()} of a dataset of {len(self)} rows")
        return tuple(self._take(side, rows) for side in range(len(self.sides)))

    def _take(self, side: int, rows: NDArray[np.int64]) -> Sentences:
        starts, lengths = self._offsets[side][rows], self.lengths[rows, side].astype(np.int64)
        shifts = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return Sentences(self._ids[side][shifts + np.arange(len(shifts))], lengths)

    def target_counts(self, size: int) -> NDArray[np.int64]:
        """(size,): number of occurrences of each id below `size` as a label of the last side; EOS once per row."""
        counts = np.zeros(size, dtype=np.int64)
        ids = self._ids[-1]
        for start in range(0, len(ids), _AT_ONCE):
            counts += np.bincount(ids[start : start + _AT_ONCE], minlength=size)
        counts[EOS] += self.special * len(self)
        return counts


class TextDataset(Dataset):
    """N excerpts of documents, each with the tokens that a language model predicts together; rows have one side.

    The labels of all documents are stored, with EOS after each document. For a row of length n, `take` returns n + 1
    ids: the preceding token, or BOS at the start of a document, and the labels.
    """

    special = 0

    def __str__(self) -> str:
        return f"{self.amount:,} tokens"

    @property
    def amount(self) -> int:
        """Number of tokens, ends of documents included."""
        return len(self._ids[0])

    def _take(self, side: int, rows: NDArray[np.int64]) -> Sentences:
        # EOS also precedes the first document, as index -1 is the EOS of the last one
        starts, lengths = self._offsets[side][rows] - 1, self.lengths[rows, side].astype(np.int64) + 1
        firsts = np.cumsum(lengths) - lengths
        ids = self._ids[side][np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())]
        ids[firsts[ids[firsts] == EOS]] = BOS
        return Sentences(ids, lengths)


class DatasetWriter:
    """Writes the files of a `Dataset` incrementally; `finish` completes them with the header."""

    def __init__(self, folder: Path, types: Mapping[str, np.dtype[Any]], vectors: int | None = None) -> None:
        """types: data types of each side's ids, see `id_types`. vectors: components of the source's vectors, if any."""
        self._folder, self._types, self._vectors = folder, dict(types), vectors
        names = [
            "lines.bin",
            "lengths.bin",
            *(f"{side}{ending}" for side in types for ending in (".bin", ".offsets.bin")),
        ]
        self._files: dict[str, BinaryIO] = {name: (folder / name).open("wb") for name in names}
        self._written = np.zeros(len(types), dtype=np.int64)
        for side in types:
            self._files[f"{side}.offsets.bin"].write(np.zeros(1, dtype=np.int64).tobytes())

    def add(self, lines: NDArray[np.int64], *sides: Sentences) -> None:
        """Append rows. lines: their lines in the corpus."""
        lengths = np.stack([side.lengths for side in sides], 1)
        self._files["lines.bin"].write(lines.astype(np.int64).tobytes())
        self._files["lengths.bin"].write(lengths.astype(np.int32).tobytes())
        ends = self._written + np.cumsum(lengths, 0)
        for place, ((name, dtype), side) in enumerate(zip(self._types.items(), sides, strict=True)):
            self._files[f"{name}.bin"].write(side.ids.astype(dtype).tobytes())
            self._files[f"{name}.offsets.bin"].write(np.ascontiguousarray(ends[:, place]).tobytes())
        self._written = self._written + lengths.sum(0)

    def finish(self, fingerprint: str, others: tuple[str, ...] = ()) -> None:
        """Complete the folder. others: names of further files whose checksums are verified when it is opened."""
        self.close()
        names = [*self._files, *others]
        header = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "types": {side: dtype.name for side, dtype in self._types.items()},
            "files": {name: [(self._folder / name).stat().st_size, _checksum(self._folder / name)] for name in names},
        }
        if self._vectors is not None:
            header["vectors"] = self._vectors
        (self._folder / HEADER).write_text(json.dumps(header, indent=1), encoding="utf-8")

    def close(self) -> None:
        """Close the files, even if they are incomplete."""
        for file in self._files.values():
            file.close()


def id_types(sides: Mapping[str, int], vectors: bool = False) -> dict[str, np.dtype[Any]]:
    """Data types for storing the ids of each side, by vocabulary size; a source of `vectors` is stored as float32."""
    types = {side: np.dtype(np.uint16 if size <= 1 << 16 else np.uint32) for side, size in sides.items()}
    return types | {"source": np.dtype(np.float32)} if vectors else types


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


_ROWS_AT_ONCE = 1 << 18


class DatasetUnion:
    """The rows of several datasets, in order. sides, special, lengths, fingerprint: as in `Dataset`.

    weights: number of times that an epoch reads each part, for `target_counts`.
    """

    def __init__(self, parts: Sequence[Dataset], weights: Sequence[float], folder: Path) -> None:
        """folder: for an anonymous temporary file with the lengths of all parts. Raises ResourceError if writing it
        fails.
        """
        self.parts, self.weights = tuple(parts), tuple(weights)
        self.sides, self.special = parts[0].sides, parts[0].special
        self.fingerprint = sha256(" ".join(part.fingerprint for part in parts).encode()).hexdigest()
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                for part in parts:
                    for start in range(0, len(part), _ROWS_AT_ONCE):
                        file.write(part.lengths[start : start + _ROWS_AT_ONCE].tobytes())
                file.flush()
                mapped = np.memmap(file, np.int32, "r", shape=(len(self), len(self.sides)))
        except OSError as error:
            raise unwritable(folder / "lengths", error) from error
        self.lengths: NDArray[np.int32] = mapped.view(np.ndarray)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, row: int) -> tuple[NDArray[Any], ...]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a dataset of {len(self)} rows")
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.parts[part][row - int(self._starts[part])]

    def take(self, rows: NDArray[np.int64]) -> tuple[Sentences, ...]:
        """Copy rows. Returns each side, in the given order."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row {rows.max()} of a dataset of {len(self)} rows")
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(owners, kind="stable")
        taken = [
            self.parts[part].take(rows[order[owners[order] == part]] - self._starts[part])
            for part in np.unique(owners).tolist()
        ]
        return tuple(_reordered(side, order) for side in zip(*taken, strict=True))

    def target_counts(self, size: int) -> NDArray[np.float64]:
        """(size,): average number of occurrences per epoch of each id below `size` as a label of the last side."""
        counts = [part.target_counts(size) * weight for part, weight in zip(self.parts, self.weights, strict=True)]
        return np.sum(counts, axis=0, dtype=np.float64)  # type: ignore[no-any-return]


def _reordered(sides: Sequence[Sentences], order: NDArray[np.int64]) -> Sentences:
    """Concatenate sentences so that the i-th of all given sentences becomes sentence order[i]."""
    joined = np.concatenate([side.ids for side in sides])
    lengths = np.concatenate([side.lengths for side in sides])
    positions = np.argsort(order)  # index of each sentence of the result among the given ones
    starts = (np.cumsum(lengths) - lengths)[positions]
    wanted = lengths[positions]
    shifts = np.repeat(starts - (np.cumsum(wanted) - wanted), wanted)
    return Sentences(joined[shifts + np.arange(len(shifts))], wanted)
