"""`Lexicon`: the translation probabilities t(f | e) of the words that occur in a sentence pair with each other."""

import itertools
from collections.abc import Mapping
from ctypes import byref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ModelError, ResourceError
from dragoman.statistical.alignment.estimation.library import Pairs, address, functions
from dragoman.statistical.alignment.estimation.pairs import NULL, Floats, Ints, Longs, WordPairs
from dragoman.statistical.alignment.estimation.workers import Workers

_MISSING = 1e-7
"""t(f | e) of words that never occurred in a pair, and of unknown words. Source: GIZA++'s default."""
_MAX_ENTRIES = 2**31 - 2


class Lexicon:
    """Rows of target words with their probabilities, one row per source word. The first row is that of NULL.

    row_starts: (source words + 2), where each row starts. targets: (entries), sorted within rows. probabilities:
    (entries + 1); the last element is the probability of all words that are not in the row. The row of NULL contains
    every target word. divergence: the Kullback–Leibler divergence of the last estimate from its prior, in nats.
    """

    def __init__(self, row_starts: Longs, targets: Ints, probabilities: Floats) -> None:
        self.row_starts, self.targets, self.probabilities = row_starts, targets, probabilities
        self.divergence = 0.0

    @staticmethod
    def of_pairs(pairs: WordPairs, words: tuple[int, int], workers: Workers) -> tuple["Lexicon", Ints]:
        """Return a lexicon for the words of the pairs, with t = 1 / target words, and the entry of each cell.

        words: the numbers of source words, without NULL, and of target words. Raises ResourceError if there are too
        many entries.
        """
        source_words, target_words = words
        order = np.argsort(pairs.source, kind="stable").astype(np.int64)
        tokens = np.bincount(pairs.source, minlength=source_words + 1)
        occurrences = np.concatenate([[0], np.cumsum(tokens)]).astype(np.int64)
        owner = np.repeat(np.arange(len(pairs), dtype=np.int32), pairs.source_lengths)
        structure = Pairs.of_pairs(pairs, np.empty(0, np.int32))
        sizes = np.zeros(source_words + 1, np.int64)
        sizes[NULL] = target_words

        def list_targets(first: int, last: int, row_starts: Longs | None, targets: Ints, slots: Ints) -> None:
            marks = np.full(target_words, -1, np.int32)
            functions().dragoman_list_targets(
                byref(structure),
                address(order),
                address(occurrences),
                address(owner),
                first,
                last,
                address(marks),
                None if row_starts is None else address(row_starts),
                address(sizes),
                address(targets),
                address(slots),
            )

        ranges = _balanced_ranges(tokens[1:], 4 * workers.threads, 1)
        nothing = np.empty(0, np.int32)
        workers.run(lambda first, last: list_targets(first, last, None, nothing, nothing), ranges)
        row_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if row_starts[-1] > _MAX_ENTRIES:
            raise ResourceError(
                f"{row_starts[-1]:,} pairs of words occur in the same sentence pair, but at most {_MAX_ENTRIES:,} are "
                "supported: use fewer sentence pairs"
            )
        targets = np.empty(row_starts[-1], np.int32)
        targets[:target_words] = np.arange(target_words)
        slots = np.empty(pairs.cells[-1], np.int32)
        first_rows = np.repeat(pairs.cells[:-1] - pairs.target_starts[:-1], pairs.target_lengths)
        slots[first_rows + np.arange(len(pairs.target))] = pairs.target
        workers.run(lambda first, last: list_targets(first, last, row_starts, targets, slots), ranges)
        probabilities = np.full(len(targets) + 1, 1 / max(target_words, 1))
        probabilities[-1] = _MISSING
        return Lexicon(row_starts, targets, probabilities), slots

    @staticmethod
    def of_arrays(arrays: Mapping[str, NDArray[Any]]) -> "Lexicon":
        """Return the lexicon that `arrays` describes. Raises ModelError if the arrays are damaged."""
        try:
            row_starts, targets, probabilities = (arrays[name] for name in ("row_starts", "targets", "probabilities"))
        except KeyError as error:
            raise ModelError(f"the lexicon is damaged: {error} is missing. Copy the model folder again") from None
        is_valid = (
            [each.dtype.name for each in (row_starts, targets, probabilities)] == ["int64", "int32", "float64"]
            and len(row_starts) >= 2
            and row_starts[0] == 0
            and row_starts[-1] == len(targets) == len(probabilities) - 1
            and bool((np.diff(row_starts) >= 0).all())
        )
        if not is_valid:
            raise ModelError("the lexicon is damaged: its rows do not fit together. Copy the model folder again")
        return Lexicon(row_starts, targets, probabilities)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model folder."""
        return {"row_starts": self.row_starts, "targets": self.targets, "probabilities": self.probabilities}

    def find(self, pairs: WordPairs, workers: Workers) -> Ints:
        """Return the entry of each cell of new pairs."""
        slots = np.empty(pairs.cells[-1], np.int32)
        structure = Pairs.of_pairs(pairs, slots)

        def find_entries(first: int, last: int) -> None:
            functions().dragoman_find_entries(
                byref(structure),
                address(self.row_starts),
                address(self.targets),
                first,
                last,
                len(self.targets),
                address(slots),
            )

        workers.run(find_entries, list(pairs.blocks()))
        return slots

    def row(self, word: int) -> tuple[Ints, Floats]:
        """Return the target words of a source word's row and t(f | e). word: from 1, or NULL."""
        row = slice(self.row_starts[word], self.row_starts[word + 1])
        return self.targets[row], self.probabilities[:-1][row]

    def estimate(self, counts: Floats, prior: float, workers: Workers) -> None:
        """Replace the probabilities by estimates from expected counts, (entries).

        prior: the parameter of a symmetric Dirichlet prior of each row, for variational Bayes, or 0 for maximum
        likelihood.
        """
        divergence = np.zeros(len(self.row_starts) - 1) if prior else None

        def estimate_rows(first: int, last: int) -> None:
            functions().dragoman_estimate_rows(
                address(self.row_starts),
                address(counts),
                prior,
                first,
                last,
                address(self.probabilities),
                None if divergence is None else address(divergence),
            )

        workers.run(estimate_rows, _balanced_ranges(np.diff(self.row_starts), 4 * workers.threads, 0))
        self.divergence = 0.0 if divergence is None else float(divergence.sum())

    def count_ranges(self, pairs: WordPairs, parts: int) -> list[tuple[int, int]]:
        """Return ranges of source words with about the same number of cells, for `Corpus.count_entries`."""
        tokens = np.bincount(pairs.source, minlength=len(self.row_starts) - 1)
        tokens[NULL] += len(pairs)
        return _balanced_ranges(tokens, parts, 0)


def _balanced_ranges(weights: NDArray[np.integer[Any]], parts: int, offset: int) -> list[tuple[int, int]]:
    """Divide indices into at most `parts` ranges of about the same total weight. offset: added to the indices."""
    ends = np.cumsum(weights)
    total = int(ends[-1]) if len(ends) else 0
    edges = np.searchsorted(ends, np.arange(1, parts) * total / parts).tolist()
    limits = sorted({0, *edges, len(ends)})
    return [(first + offset, last + offset) for first, last in itertools.pairwise(limits)]
