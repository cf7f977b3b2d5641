"""BPE-dropout, which skips merges of a word at random, with a seeded random generator.

The `tokenizers` library also supports BPE-dropout, but its random generator cannot be seeded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

CACHED_LETTERS = 1_500_000
"""Maximum total length of the words in the cache, about 200,000 words of languages that separate words."""

DRAWS = 32
NO_MERGE = 1 << 60


@dataclass(frozen=True)
class _Word:
    """The split of a word without dropout.

    alphabet: ids of its bytes. pieces: ids of its pieces. merges: (position, merged id) of each merge, in order.
    """

    alphabet: tuple[int, ...]
    pieces: tuple[int, ...]
    merges: tuple[tuple[int, int], ...]


class MergeTable:
    """The learned merges, by which words are split with or without dropout."""

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
        """vocabulary: symbol → id. merges: pairs of symbols, in the order in which they were learned."""
        self._size = len(vocabulary)
        self._letters = {symbol: number for symbol, number in vocabulary.items() if len(symbol) == 1}
        self._ranks: dict[int, int] = {}  # by pair: left · size + right
        self._merged: list[int] = []
        for rank, (left, right) in enumerate(merges):
            self._ranks[vocabulary[left] * self._size + vocabulary[right]] = rank
            self._merged.append(vocabulary[left + right])
        self._words: dict[str, _Word] = {}
        self._cached_letters = 0

    def segment(self, words: Sequence[str], dropout: float = 0.0, rng: np.random.Generator | None = None) -> list[int]:
        """Return the ids of `words`, which are written in the byte alphabet of the library's `ByteLevel`.

        In every step, each pair is dropped with probability `dropout`, and the best-ranked remaining pair is merged. A
        word is complete when all pairs are dropped (Provilkov et al. 2020, algorithm 1). This implementation draws for
        the pairs in the order of their ranks and stops at the first pair that is not dropped. The distribution is the
        same, with few draws. With a dropout of 0, the pieces are those of the library.
        """
        if dropout == 0.0 or rng is None:
            return [piece for word in words for piece in self._word(word).pieces]
        ids: list[int] = []
        gaps = _gaps(dropout, rng)
        gap = next(gaps)  # number of draws that succeed before the next failure
        for text in words:
            word = self._word(text)
            if len(word.merges) <= gap:
                gap -= len(word.merges)
                ids.extend(word.pieces)
            else:
                gap = self._segment_with_drops(word, gap, gaps, ids)
        return ids

    def _segment_with_drops(self, word: _Word, gap: int, gaps: Iterator[int], ids: list[int]) -> int:
        """Append the pieces of a word to `ids`. The first `gap` merges succeed, and the next one fails.

        Returns the number of further draws that succeed before the next failure.
        """
        pieces = list(word.alphabet)
        for position, merged in word.merges[:gap]:
            pieces[position : position + 2] = [merged]
        gap = 0
        ranks = self._pair_ranks(pieces)
        while True:
            if gap:
                best = min(ranks, default=NO_MERGE)
                if best == NO_MERGE:
                    break
                gap -= 1
                self._merge(pieces, ranks, ranks.index(best))
                continue
            candidates = [(rank, position) for position, rank in enumerate(ranks) if rank != NO_MERGE]
            for _, position in sorted(candidates):
                if gap:
                    gap -= 1
                    self._merge(pieces, ranks, position)
                    break
                gap = next(gaps)
            else:
                break
        ids.extend(pieces)
        return gap

    def _word(self, text: str) -> _Word:
        word = self._words.get(text)
        if word is None:
            alphabet = tuple(self._letters[letter] for letter in text)
            pieces, merges = list(alphabet), []
            ranks = self._pair_ranks(pieces)
            while (best := min(ranks, default=NO_MERGE)) != NO_MERGE:
                position = ranks.index(best)
                self._merge(pieces, ranks, position)
                merges.append((position, pieces[position]))
            word = _Word(alphabet, tuple(pieces), tuple(merges))
            if self._cached_letters >= CACHED_LETTERS:
                self._words.clear()
                self._cached_letters = 0
            self._words[text] = word
            self._cached_letters += len(text)
        return word

    def _merge(self, pieces: list[int], ranks: list[int], position: int) -> None:
        """Merge the pieces at `position` and `position` + 1 in place, and update the ranks of the pairs."""
        merged = self._merged[ranks.pop(position)]
        pieces[position : position + 2] = [merged]
        if position > 0:
            ranks[position - 1] = self._ranks.get(pieces[position - 1] * self._size + merged, NO_MERGE)
        if position < len(ranks):
            ranks[position] = self._ranks.get(merged * self._size + pieces[position + 1], NO_MERGE)

    def _pair_ranks(self, pieces: list[int]) -> list[int]:
        """Return the rank of every adjacent pair, or NO_MERGE if no merge of the pair was learned."""
        ranks, size = self._ranks, self._size
        return [ranks.get(left * size + right, NO_MERGE) for left, right in pairwise(pieces)]


def _gaps(dropout: float, rng: np.random.Generator) -> Iterator[int]:
    """Yield lengths of runs of successes in an endless sequence of draws that fail with probability `dropout`."""
    while True:
        yield from (rng.geometric(dropout, size=DRAWS) - 1).tolist()
