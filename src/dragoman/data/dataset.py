"""Tokenised corpora on disk: arrays and JSON, without pickle, which are written once and then memory-mapped."""

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
from dragoman.text.unknown_tokens import UnknownTokens


@dataclass(frozen=True)
class Sentences:
    """Concatenated sentences.

    ids: (sum of lengths,) integers, or (sum of lengths, n) float32 vectors or int64 tokens with factors. lengths: (B,)
    int64, the length of each sentence.
    """

    ids: NDArray[Any]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int] | NDArray[Any]]) -> "Sentences":
        """Concatenate a list of at least one sentence."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        first = next((sentence for sentence in sentences if len(sentence)), ())
        shape, is_factored = np.shape(first) or (0,), getattr(first, "dtype", None) == np.int64
        dtype = np.int64 if len(shape) == 1 or is_factored else np.float32
        arrays = [np.asarray(sentence, dtype=dtype) for sentence in sentences if len(sentence)]
        return cls(np.concatenate([np.zeros((0, *shape[1:]), dtype), *arrays]), lengths)


FORMAT = 2
HEADER = "dataset.json"
_IDS_PER_CHUNK = 1 << 22
_BYTES_PER_CHUNK = 1 << 20


class Dataset:
    """N memory-mapped rows of token ids without special symbols. A row has one or more sides, such as a sentence pair.

    Indexing a row returns the ids of each side as 1-D arrays, or (S, n) float32 for a source of feature vectors.

    sides: names of the sides. lengths: (N, sides) int32, numbers of tokens. lines: (N,) int64, the line of each row in
    its corpus, counted from 1. fingerprint: digest of everything that determines the ids. special: number of special
    symbols that a batch adds to each side of a row.
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
            raise DataError(f"The tokenised corpus in {folder} is damaged ({error}). Delete this folder.") from error

    @property
    def parts(self) -> tuple["Dataset", ...]:
        """A tuple that contains only this dataset; see `DatasetUnion`."""
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
        """The size that determines temperature sampling."""
        return len(self)

    def take(self, rows: NDArray[np.int64]) -> tuple[Sentences, ...]:
        """Return a copy of each side of the rows, in the order of `rows`."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row {rows.max()} of a dataset of {len(self)} rows")
        return tuple(self._take_side(side, rows) for side in range(len(self.sides)))

    def _take_side(self, side: int, rows: NDArray[np.int64]) -> Sentences:
        starts, lengths = self._offsets[side][rows], self.lengths[rows, side].astype(np.int64)
        shifts = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return Sentences(self._ids[side][shifts + np.arange(len(shifts))], lengths)

    def count_unknown(self, side: int) -> UnknownTokens:
        """Return the number of unknown tokens of a side of token ids."""
        ids = self._ids[side]
        return UnknownTokens.of(ids[start : start + _IDS_PER_CHUNK] for start in range(0, len(ids), _IDS_PER_CHUNK))

    def target_counts(self, size: int) -> NDArray[np.int64]:
        """Return the number of occurrences of each id below `size` as a label of the last side, (size,).

        EOS occurs once per row.
        """
        counts = np.zeros(size, dtype=np.int64)
        ids = self._ids[-1]
        for start in range(0, len(ids), _IDS_PER_CHUNK):
            counts += np.bincount(ids[start : start + _IDS_PER_CHUNK], minlength=size)
        counts[EOS] += self.special * len(self)
        return counts


class TextDataset(Dataset):
    """N blocks of documents for a language model. A row has one side: the labels of one block.

    The labels of all documents are stored, with EOS after each document. For a row with n labels, `take` returns n + 1
    ids: the preceding token (BOS at the start of a document) and the labels.
    """

    special = 0

    def __str__(self) -> str:
        return f"{self.amount:,} tokens"

    @property
    def amount(self) -> int:
        """Number of tokens, including the EOS of each document."""
        return len(self._ids[0])

    def _take_side(self, side: int, rows: NDArray[np.int64]) -> Sentences:
        # The first document is also preceded by an EOS: index -1 is the EOS of the last document.
        starts, lengths = self._offsets[side][rows] - 1, self.lengths[rows, side].astype(np.int64) + 1
        firsts = np.cumsum(lengths) - lengths
        ids = self._ids[side][np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())]
        ids[firsts[ids[firsts] == EOS]] = BOS
        return Sentences(ids, lengths)


class DatasetWriter:
    """Writes the files of a `Dataset` incrementally. `finish` writes the header."""

    def __init__(self, folder: Path, dtypes: Mapping[str, np.dtype[Any]], vectors: int | None = None) -> None:
        """dtypes: dtype of the ids of each side; see `id_dtypes`. vectors: number of components of source vectors."""
        self._folder, self._types, self._vectors = folder, dict(dtypes), vectors
        names = [
            "lines.bin",
            "lengths.bin",
            *(f"{side}{ending}" for side in dtypes for ending in (".bin", ".offsets.bin")),
        ]
        self._files: dict[str, BinaryIO] = {name: (folder / name).open("wb") for name in names}
        self._written = np.zeros(len(dtypes), dtype=np.int64)
        for side in dtypes:
            self._files[f"{side}.offsets.bin"].write(np.zeros(1, dtype=np.int64).tobytes())

    def add(self, lines: NDArray[np.int64], *sides: Sentences) -> None:
        """Append rows. lines: the line of each row in the corpus."""
        lengths = np.stack([side.lengths for side in sides], 1)
        self._files["lines.bin"].write(lines.astype(np.int64).tobytes())
        self._files["lengths.bin"].write(lengths.astype(np.int32).tobytes())
        ends = self._written + np.cumsum(lengths, 0)
        for index, ((name, dtype), side) in enumerate(zip(self._types.items(), sides, strict=True)):
            self._files[f"{name}.bin"].write(side.ids.astype(dtype).tobytes())
            self._files[f"{name}.offsets.bin"].write(np.ascontiguousarray(ends[:, index]).tobytes())
        self._written = self._written + lengths.sum(0)

    def finish(self, fingerprint: str, others: tuple[str, ...] = ()) -> None:
        """Complete the folder. others: names of further files whose checksums `Dataset` verifies."""
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


def id_dtypes(sides: Mapping[str, int], vectors: bool = False) -> dict[str, np.dtype[Any]]:
    """Return the data type in which the ids of each side are stored.

    sides: vocabulary size of each side. vectors: whether the source consists of vectors, which are stored as float32.
    """
    types = {side: np.dtype(np.uint16 if size <= 1 << 16 else np.uint32) for side, size in sides.items()}
    return types | {"source": np.dtype(np.float32)} if vectors else types


def _map(path: Path, dtype: Any) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)  # slicing a memmap object itself is slow


def _check_file(path: Path, size: int, checksum: int) -> None:
    actual_size = path.stat().st_size
    if actual_size != size:
        raise ValueError(f"{path.name} has {actual_size} bytes instead of {size}")
    if _checksum(path) != checksum:
        raise ValueError(f"the checksum of {path.name} is wrong")


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_BYTES_PER_CHUNK):
            value = zlib.crc32(chunk, value)
    return value


_ROWS_PER_CHUNK = 1 << 18


class DatasetUnion:
    """The rows of several datasets, in order. sides, special, lengths and fingerprint are as in `Dataset`.

    weights: number of times that an epoch reads each part, for `target_counts`.
    """

    def __init__(self, parts: Sequence[Dataset], weights: Sequence[float], folder: Path) -> None:
        """folder: folder for an anonymous temporary file with the lengths of all parts.

        Raises ResourceError if the file cannot be written.
        """
        self.parts, self.weights = tuple(parts), tuple(weights)
        self.sides, self.special = parts[0].sides, parts[0].special
        self.fingerprint = sha256(" ".join(part.fingerprint for part in parts).encode()).hexdigest()
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                for part in parts:
                    for start in range(0, len(part), _ROWS_PER_CHUNK):
                        file.write(part.lengths[start : start + _ROWS_PER_CHUNK].tobytes())
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
        """Return a copy of each side of the rows, in the order of `rows`."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row {rows.max()} of a dataset of {len(self)} rows")
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(owners, kind="stable")
        copies = [
            self.parts[part].take(rows[order[owners[order] == part]] - self._starts[part])
            for part in np.unique(owners).tolist()
        ]
        return tuple(_concatenate_in_order(parts, order) for parts in zip(*copies, strict=True))

    def target_counts(self, size: int) -> NDArray[np.float64]:
        """Return the mean number of occurrences of each id per epoch, as in `Dataset.target_counts`, (size,)."""
        counts = [part.target_counts(size) * weight for part, weight in zip(self.parts, self.weights, strict=True)]
        return np.sum(counts, axis=0, dtype=np.float64)  # type: ignore[no-any-return]


def _concatenate_in_order(parts: Sequence[Sentences], new_indices: NDArray[np.int64]) -> Sentences:
    """Concatenate sentences in a new order: input sentence i becomes output sentence new_indices[i]."""
    joined = np.concatenate([part.ids for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    old_indices = np.argsort(new_indices)
    starts = (np.cumsum(lengths) - lengths)[old_indices]
    new_lengths = lengths[old_indices]
    shifts = np.repeat(starts - (np.cumsum(new_lengths) - new_lengths), new_lengths)
    return Sentences(joined[shifts + np.arange(len(shifts))], new_lengths)
