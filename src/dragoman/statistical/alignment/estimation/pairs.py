"""`WordPairs`: sentence pairs as numbered words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.statistical.alignment.estimation.words import UNKNOWN

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

NULL = 0
"""The number of the empty source word, with which unaligned target words are aligned."""

_BLOCK_CELLS = 1 << 17


@dataclass(frozen=True)
class WordPairs:
    """N sentence pairs. Source words are numbered from 1 and target words from 0; UNKNOWN is a new word.

    source, target: the words of all texts. source_starts, target_starts: (N + 1), where each text starts.
    """

    source: Ints
    target: Ints
    source_starts: Longs
    target_starts: Longs

    @staticmethod
    def of(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "WordPairs":
        """Return the pairs of texts whose words are numbered from 0 in both languages."""
        source = _concatenate(sources)
        return WordPairs(_plus(source, 1), _concatenate(targets), _starts(sources), _starts(targets))

    def swapped(self) -> "WordPairs":
        """Return the pairs with source and target exchanged."""
        return WordPairs(_plus(self.target, 1), _plus(self.source, -1), self.target_starts, self.source_starts)

    def __len__(self) -> int:
        return len(self.source_starts) - 1

    @cached_property
    def source_lengths(self) -> Longs:
        """The number of words of each source, (N)."""
        return np.diff(self.source_starts)

    @cached_property
    def target_lengths(self) -> Longs:
        """The number of words of each target, (N)."""
        return np.diff(self.target_starts)

    @cached_property
    def cells(self) -> Longs:
        """Where the matrix (I + 1, J) of each pair starts if all matrices are concatenated, (N + 1)."""
        return np.concatenate([[0], np.cumsum((self.source_lengths + 1) * self.target_lengths)])

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of pairs with about the same number of cells. They depend only on the lengths of the pairs."""
        edges = np.searchsorted(self.cells, np.arange(0, self.cells[-1], _BLOCK_CELLS), side="right") - 1
        limits = np.unique(np.concatenate([[0], edges, [len(self)]])).tolist()
        yield from pairwise(limits)


def _concatenate(texts: Sequence[Sequence[int]]) -> Ints:
    return np.fromiter(chain.from_iterable(texts), np.int32, sum(map(len, texts)))


def _starts(texts: Sequence[Sequence[int]]) -> Longs:
    return np.concatenate([[0], np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))]).astype(np.int64)


def _plus(words: Ints, offset: int) -> Ints:
    """Renumber words, except UNKNOWN."""
    return np.where(words == UNKNOWN, UNKNOWN, words + offset).astype(np.int32)
