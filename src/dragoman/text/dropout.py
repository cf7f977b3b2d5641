"""BPE-dropout: a word's merges applied with some of them skipped at random, from a generator of ours.

The subword library drops merges as well, but from a generator that cannot be seeded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CACHED_WORDS = 200_000
DRAWS = 32


@dataclass(frozen=True)
class _Word:
    """A word's bytes as ids, its pieces without dropout, and how many merges lead from the one to the other."""

    alphabet: tuple[int, ...]
    pieces: tuple[int, ...]
    merges: int


class MergeTable:
    """The learned merges, in the order in which they were learned."""

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
        """vocabulary: symbol → id. merges: pairs of symbols, first learned first."""
        self._size = len(vocabulary)
        self._letters = {symbol: number for symbol, number in vocabulary.items() if len(symbol) == 1}
        self._ranks: dict[int, tuple[int, int]] = {}
        for rank, (left, right) in enumerate(merges):
            pair = vocabulary[left] * self._size + vocabulary[right]
            self._ranks[pair] = (rank, vocabulary[left + right])
        self._words: dict[str, _Word] = {}

    def segment(self, words: Sequence[str], dropout: float = 0.0, rng: np.random.Generator | None = None) -> list[int]:
        """The ids of `words`, given in the byte alphabet of the library's `ByteLevel`.

        At every step the best-ranked pair that survives its own draw is merged; a pair fails with probability
        `dropout`; a word ends when no pair survives (algorithm 1 of Provilkov et al. 2020). Draws are made best rank
        first and only until one survives, which is the same distribution with few draws. 0 gives the library's pieces.
        """
        if dropout == 0.0 or rng is None:
            return [piece for word in words for piece in self._word(word).pieces]
        ids: list[int] = []
        gaps = _gaps(dropout, rng)
        gap = next(gaps)  # draws that succeed before the next one that fails
        for text in words:
            word = self._word(text)
            if word.merges <= gap:
                gap -= word.merges
                ids.extend(word.pieces)
                continue
            pieces = list(word.alphabet)
            ranks = self._pair_ranks(pieces)
            while ranks:
                for _rank, position, merged in sorted(ranks):
                    if gap == 0:
                        gap = next(gaps)
                        continue
                    gap -= 1
                    pieces[position : position + 2] = [merged]
                    break
                else:
                    break
                ranks = self._pair_ranks(pieces)
            ids.extend(pieces)
        return ids

    def _word(self, text: str) -> _Word:
        word = self._words.get(text)
        if word is None:
            alphabet = tuple(self._letters[letter] for letter in text)
            pieces = self._merge(list(alphabet))
            word = _Word(alphabet, tuple(pieces), len(alphabet) - len(pieces))
            if len(self._words) >= CACHED_WORDS:
                self._words.clear()
            self._words[text] = word
        return word

    def _merge(self, pieces: list[int]) -> list[int]:
        while ranks := self._pair_ranks(pieces):
            _, position, merged = min(ranks)
            pieces[position : position + 2] = [merged]
        return pieces

    def _pair_ranks(self, pieces: list[int]) -> list[tuple[int, int, int]]:
        """(rank, position, merged id) of every neighbouring pair that has a merge."""
        known, size = self._ranks, self._size
        return [
            (found[0], position, found[1])
            for position in range(len(pieces) - 1)
            if (found := known.get(pieces[position] * size + pieces[position + 1])) is not None
        ]


def _gaps(dropout: float, rng: np.random.Generator) -> Iterator[int]:
    """Lengths of the runs of successes in an endless row of draws that fail with probability `dropout`."""
    while True:
        yield from (rng.geometric(dropout, size=DRAWS) - 1).tolist()
