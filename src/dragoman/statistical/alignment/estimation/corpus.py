"""`Corpus`: runs the expectation step of a model on sentence pairs, in parallel and with bounded memory."""

from collections.abc import Callable
from ctypes import byref
from typing import NamedTuple, Protocol

import numpy as np

from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.library import Pairs, address, functions
from dragoman.statistical.alignment.estimation.pairs import Floats, Ints, WordPairs
from dragoman.statistical.alignment.estimation.workers import Workers

_CHUNK_BLOCKS = 16
"""Number of blocks whose posterior probabilities are in memory at the same time."""


class Expectation(Protocol):
    """The expectation step of a model."""

    def __call__(self, first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
        """Compute the posterior probabilities p(i | j, pair) and the log-likelihoods of a range of pairs.

        posteriors, log_likelihoods: the addresses of the results. Calls run in parallel.
        """
        ...


class Links(NamedTuple):
    """The links of sentence pairs in one direction.

    positions: the source position from 0 of each target word of all pairs, or −1 for NULL. log_likelihoods: (N), the
    natural logarithm of p(target | source).
    """

    positions: Ints
    log_likelihoods: Floats


class Corpus:
    """Sentence pairs, the lexicon's entry for each of their cells, and a plan that does not depend on the threads."""

    def __init__(
        self, pairs: WordPairs, slots: Ints, workers: Workers, on_pairs: Callable[[int], None] | None = None
    ) -> None:
        """on_pairs: called with the number of pairs after each part of a pass."""
        self.pairs, self.workers = pairs, workers
        self.structure = Pairs.of_pairs(pairs, slots)
        self.on_pairs = on_pairs or (lambda _: None)
        blocks = list(pairs.blocks())
        self._chunks = [blocks[start : start + _CHUNK_BLOCKS] for start in range(0, len(blocks), _CHUNK_BLOCKS)]

    def run(self, expect: Expectation, count: Callable[[int, int, int], None] | None = None) -> Floats:
        """Run an expectation step, and return the log-likelihood of each pair, (N).

        count: called after each chunk with its range of pairs and the address of their posterior probabilities.
        """
        cells, log_likelihoods = self.pairs.cells, np.zeros(len(self.pairs))
        posteriors = np.empty(max((int(cells[chunk[-1][1]] - cells[chunk[0][0]]) for chunk in self._chunks), default=0))
        for chunk in self._chunks:
            start, end = chunk[0][0], chunk[-1][1]

            def expect_block(first: int, last: int, start: int = start) -> None:
                offset = int(cells[first] - cells[start])
                expect(first, last, address(posteriors[offset:]), address(log_likelihoods[first:]))

            self.workers.run(expect_block, chunk)
            if count is not None:
                count(start, end, address(posteriors))
            self.on_pairs(end - start)
        return log_likelihoods

    def links(self, expect: Expectation) -> Links:
        """Link each target word with the source word of the highest posterior probability.

        Among equally probable source words, the first one is chosen, and NULL only if it is more probable.
        """
        positions = np.empty(len(self.pairs.target), np.int32)

        def expect_links(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            expect(first, last, posteriors, log_likelihoods)
            row = positions[self.pairs.target_starts[first] :]
            functions().dragoman_choose_links(byref(self.structure), posteriors, first, last, address(row))

        return Links(positions, self.run(expect_links))

    def posteriors(self, expect: Expectation) -> Floats:
        """Return the posterior probabilities of all cells, in the order of `WordPairs.cells`."""
        found = np.empty(int(self.pairs.cells[-1]))

        def expect_cells(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            expect(first, last, address(found[self.pairs.cells[first] :]), log_likelihoods)

        self.run(expect_cells)
        return found

    def entry_counter(self, lexicon: Lexicon, counts: Floats) -> Callable[[int, int, int], None]:
        """Return a `count` function for `run` that adds posterior probabilities to the lexicon's counts, (entries)."""
        ranges = lexicon.count_ranges(self.pairs, self.workers.threads)

        def count(start: int, end: int, posteriors: int) -> None:
            def count_range(low: int, high: int) -> None:
                functions().dragoman_count_entries(
                    byref(self.structure), posteriors, start, end, low, high, address(counts)
                )

            self.workers.run(count_range, ranges)

        return count
