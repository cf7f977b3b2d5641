"""`Shapes`: the lengths (I, J) of sentence pairs. Pairs of a shape share a matrix of position probabilities."""

import itertools
from ctypes import byref

import numpy as np

from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.library import PositionTable, address, check_memory, functions
from dragoman.statistical.alignment.estimation.pairs import Floats, Ints, Longs, WordPairs


class Shapes:
    """The distinct shapes of pairs.

    sizes: (shapes, 2), I and J, sorted. numbers: (N), the shape of each pair. starts: (shapes + 1), where the matrix
    (I + 1, J) of each shape starts if all matrices are concatenated.
    """

    def __init__(self, sizes: Ints, numbers: Ints) -> None:
        self.sizes, self.numbers = sizes, numbers
        lengths = sizes.astype(np.int64)
        self.starts: Longs = np.concatenate([[0], np.cumsum((lengths[:, 0] + 1) * lengths[:, 1])]).astype(np.int64)

    @staticmethod
    def of_pairs(pairs: WordPairs) -> "Shapes":
        """Return the shapes of pairs."""
        lengths = np.stack([pairs.source_lengths, pairs.target_lengths], axis=1)
        sizes, numbers = np.unique(lengths, axis=0, return_inverse=True)
        return Shapes(np.ascontiguousarray(sizes, np.int32), numbers.reshape(-1).astype(np.int32))

    @property
    def cells(self) -> int:
        """The number of cells of all matrices."""
        return int(self.starts[-1])

    def expectation(self, corpus: Corpus, lexicon: Lexicon, probabilities: Floats | None) -> Expectation:
        """Return the expectation step with position probabilities, (cells); None for 1 / (I + 1)."""
        table = PositionTable.of({"shapes": self.numbers, "starts": self.starts, "probabilities": probabilities})
        entries = lexicon.probabilities

        def expect(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            check_memory(
                functions().dragoman_expect_mixture(
                    byref(corpus.structure),
                    address(entries),
                    byref(table),
                    first,
                    last,
                    posteriors,
                    log_likelihoods,
                )
            )

        return expect

    def count(self, corpus: Corpus, counts: Floats, start: int, end: int, posteriors: int) -> None:
        """Add posterior probabilities of a range of pairs to the counts of their shapes, (cells)."""
        table = PositionTable.of({"shapes": self.numbers, "starts": self.starts})
        parts = corpus.workers.threads
        edges = [len(self.sizes) * part // parts for part in range(parts + 1)]

        def count_range(low: int, high: int) -> None:
            functions().dragoman_count_positions(
                byref(corpus.structure), byref(table), posteriors, start, end, low, high, address(counts)
            )

        corpus.workers.run(count_range, list(itertools.pairwise(edges)))

    def normalised(self, counts: Floats) -> Floats:
        """Return a(i | j, I, J): counts (cells) divided by their sums over i, or 1 / (I + 1) where the sum is 0."""
        probabilities = np.empty_like(counts)
        for (sources, targets), start, end in zip(
            self.sizes.tolist(), self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True
        ):
            matrix = counts[start:end].reshape(sources + 1, targets)
            sums = matrix.sum(0)
            safe = np.where(sums > 0, sums, 1)
            probabilities[start:end] = np.where(sums > 0, matrix / safe, 1 / (sources + 1)).reshape(-1)
        return probabilities
