"""`DatasetUnion`: several tokenised corpora as one dataset, and how often an epoch reads each."""

import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.base.files import unwritable
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.text_corpus import TextCorpusConfig
from dragoman.data.sentences import Sentences
from dragoman.data.shards import Dataset

_AT_ONCE = 1 << 18


class DatasetUnion:
    """The rows of all parts, one part after another. sides, special, lengths, fingerprint: as of a `Dataset`.

    weights: how often an epoch reads each part; `target_counts` counts it so often.
    """

    def __init__(self, parts: Sequence[Dataset], weights: Sequence[float], folder: Path) -> None:
        """folder: gets a file without a name for the lengths of all parts, which goes with the object.

        Raises ResourceError where it cannot be written.
        """
        self.parts, self.weights = tuple(parts), tuple(weights)
        self.sides, self.special = parts[0].sides, parts[0].special
        self.fingerprint = sha256(" ".join(part.fingerprint for part in parts).encode()).hexdigest()
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                for part in parts:
                    for start in range(0, len(part), _AT_ONCE):
                        file.write(part.lengths[start : start + _AT_ONCE].tobytes())
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
        """Each side of some rows, in their order, copied."""
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
        """How often each of `size` ids of the last side occurs as a label in an epoch, on average. Shape (size,)."""
        counts = [part.target_counts(size) * weight for part, weight in zip(self.parts, self.weights, strict=True)]
        return np.sum(counts, axis=0, dtype=np.float64)  # type: ignore[no-any-return]


def epoch_weights(
    corpora: Sequence[CorpusConfig | TextCorpusConfig], sizes: Sequence[int], temperature: float | None
) -> list[float]:
    """How often an epoch reads each corpus: its weight, or what the temperature T gives to its n pairs or tokens.

    With T the corpora share an epoch of Σn of them in proportion to n^(1/T) (Arivazhagan et al. 2019, section 4.2): 1
    leaves them as they are, a high T makes them equal. Raises ConfigError where both are given.
    """
    if temperature is None:
        return [corpus.weight for corpus in corpora]
    weighted = [str(corpus) for corpus in corpora if corpus.weight != 1]
    if weighted:
        raise ConfigError(
            f"data.temperature stands instead of weights, but {', '.join(weighted)} has one: leave one out"
        )
    shares = np.array(sizes, dtype=np.float64) ** (1 / temperature)
    return (shares / shares.sum() * sum(sizes) / np.array(sizes)).tolist()  # type: ignore[no-any-return]


def _reordered(sides: Sequence[Sentences], order: NDArray[np.int64]) -> Sentences:
    """The sentences of all `sides`, of which the i-th goes to place order[i]."""
    joined = np.concatenate([side.ids for side in sides])
    lengths = np.concatenate([side.lengths for side in sides])
    places = np.argsort(order)  # of each sentence of the result among the joined ones
    starts = (np.cumsum(lengths) - lengths)[places]
    wanted = lengths[places]
    shifts = np.repeat(starts - (np.cumsum(wanted) - wanted), wanted)
    return Sentences(joined[shifts + np.arange(len(shifts))], wanted)
