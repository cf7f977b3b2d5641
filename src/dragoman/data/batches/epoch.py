"""`EpochRows`: the rows of an epoch in a seeded random order, block by block, without a list of all rows in memory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.data.batches.permutation import Permutation
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig

BLOCK = 1 << 18
"""Approximate number of rows per block. Sorting the rows of a block takes about 40 MB."""

SMALL = 1 << 22
CHUNK = 32
"""Epochs with more than SMALL rows are sampled in chunks of CHUNK neighbouring rows, which fit about one disk page."""


class Part(NamedTuple):
    """A corpus of an epoch. rows: number of rows. weight: number of times that an epoch reads the corpus."""

    rows: int
    weight: float


class EpochRows:
    """The rows of an epoch, in blocks of about equal size.

    With a weight of 2, every row is read twice. With a fractional weight, each epoch reads the next part of an endless
    sequence of seeded shuffles of the corpus, so that all rows are read equally often in the long run: at 0.5, two
    epochs read each row once.

    Each block is a sample of all rows of the epoch without replacement. A sorted corpus is therefore mixed as
    thoroughly as by a full shuffle. In large corpora, chunks of neighbouring rows are sampled instead, and the rows of
    a chunk are in the same block. Only one block is in memory at a time.
    """

    def __init__(self, parts: Sequence[Part], seed: int, epoch: int) -> None:
        self._parts, self._seed = parts, seed
        self._chunk = 1 if sum(part.rows for part in parts) <= SMALL else CHUNK
        self._chunks = [-(-part.rows // self._chunk) for part in parts]
        sampled = [max(1, round(part.weight * count)) for part, count in zip(parts, self._chunks, strict=True)]
        self._ends = np.cumsum(sampled)
        self._firsts = [epoch * count for count in sampled]
        size = int(self._ends[-1])
        blocks = -(-size * self._chunk // BLOCK)
        self._bounds = [size * number // blocks for number in range(blocks + 1)]
        self._order = Permutation(size, seed, epoch) if blocks > 1 else None

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def block(self, number: int) -> NDArray[np.int64]:
        """Return the rows of a block, numbered over all parts, in no particular order."""
        positions = np.arange(self._bounds[number], self._bounds[number + 1])
        if self._order is not None:
            positions = self._order.at(positions)
        owners = np.searchsorted(self._ends, positions, side="right")
        rows = []
        first = start = 0
        for index, part in enumerate(self._parts):
            chunks = self._chunks_of_part(index, positions[owners == index] - start)
            part_rows = (chunks[:, None] * self._chunk + np.arange(self._chunk)).ravel()
            rows.append(first + part_rows[part_rows < part.rows])
            first, start = first + part.rows, int(self._ends[index])
        return np.concatenate(rows)

    def _chunks_of_part(self, index: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the chunks of a part at these positions of its fraction of the epoch."""
        count = self._chunks[index]
        if float(self._parts[index].weight).is_integer():
            return positions % count
        rounds, positions = np.divmod(positions + self._firsts[index], count)
        for number in np.unique(rounds).tolist():
            in_round = rounds == number
            positions[in_round] = Permutation(count, self._seed, index, number).at(positions[in_round])
        return positions


def epoch_weights(
    corpora: Sequence[CorpusConfig | TextCorpusConfig], sizes: Sequence[int], temperature: float | None
) -> list[float]:
    """Return the number of times that an epoch reads each corpus: its weight, or the result of temperature sampling.

    sizes: number n of pairs or tokens of each corpus. With a temperature T, an epoch of Σn is divided among the corpora
    in proportion to n^(1/T) (Arivazhagan et al. 2019, section 4.2). T = 1 keeps the proportions of the corpora, and a
    high T equalises them. Raises ConfigError if both weights and a temperature are set.
    """
    if temperature is None:
        return [corpus.weight for corpus in corpora]
    weighted = [str(corpus) for corpus in corpora if corpus.weight != 1]
    if weighted:
        raise ConfigError(
            f"data.temperature replaces weights, but {', '.join(weighted)} has a weight: remove one of them"
        )
    fractions = np.array(sizes, dtype=np.float64) ** (1 / temperature)
    return (fractions / fractions.sum() * sum(sizes) / np.array(sizes)).tolist()  # type: ignore[no-any-return]
