"""`WordProbabilities`: scores sentence pairs with the word translation probabilities of IBM model 1."""

import numpy as np
from numpy.typing import NDArray

from dragoman.statistical.phrases.phrase_table import PhraseTable

FLOOR = 1e-7
"""Probability of word pairs that are not in the table."""


class WordProbabilities:
    """The probabilities t(target word | source word) of a table of word pairs. The empty phrase is the null word."""

    def __init__(self, table: PhraseTable) -> None:
        """table: one feature, log t, and pairs of a target word with a source word or the empty phrase."""
        nodes = np.repeat(np.arange(len(table.words)), np.diff(table.pair_starts))
        sources = np.where(nodes == 0, _NULL, table.words[nodes]).astype(np.int64)
        targets = table.target_words[table.target_starts[table.targets]]
        keys = (sources + 1) << 32 | targets
        order = np.argsort(keys)
        self._keys, self._values = keys[order], np.exp(table.features[order, 0].astype(np.float64))

    def score(self, source: NDArray[np.int32], target: NDArray[np.int64]) -> float:
        """Return log P(target | source) = Σ_j log(1 / (S + 1) · Σ_i t(e_j | f_i)), where f_0 is the null word.

        Brown et al. 1993, equation 5, without the probability of the length. Probabilities of word pairs that are not
        in the table are 1e-7.
        """
        sources = np.concatenate([[_NULL], source]).astype(np.int64)
        found = self._find(sources[:, None], target[None, :])  # (S + 1, T)
        return float(np.log(found.mean(0)).sum()) if len(target) else 0.0

    def _find(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return t(target | source), and `FLOOR` for pairs that are not in the table."""
        keys = (source + 1) << 32 | target
        positions = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[positions] == keys, self._values[positions], FLOOR)


_NULL = -1
"""The id of the null word, which is the same as that of unknown words: both translate into any word."""
