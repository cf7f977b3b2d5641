"""`Association`: which words of both sides occur in the same pairs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

import numpy as np
import regex
from numpy.typing import NDArray

_FEATURE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]|[\p{L}\p{M}\p{N}]+|[?!:;()%/@]"
)
_MOST_FEATURES = 40
"""Maximum number of features of a text. More would take too long."""

_VOCABULARY = 1000
"""Maximum number of features of each side, the most frequent ones."""

_FEWEST = 2
"""Minimum number of pairs in which two associated features occur together."""

_SHARED = 0.3
"""Association of a feature with itself, such as a name or a number."""

Features = frozenset[str]
FeaturePair = tuple[Features, Features]


def features(text: str) -> Features:
    """Return the words, numbers and punctuation marks of a text, and the characters of scripts without spaces."""
    return frozenset(_FEATURE.findall(text.casefold())[:_MOST_FEATURES])


class Association:
    """The φ coefficients (correlations) of the occurrence of source and target features in pairs."""

    def __init__(self, pairs: Sequence[FeaturePair]) -> None:
        self._sources = _frequent(source for source, _ in pairs)
        self._targets = _frequent(target for _, target in pairs)
        together = np.zeros((len(self._sources), len(self._targets)))
        counts = np.zeros(len(self._sources)), np.zeros(len(self._targets))
        for source, target in pairs:
            rows, columns = _indices(source, self._sources), _indices(target, self._targets)
            together[rows[:, None], columns] += 1
            counts[0][rows] += 1
            counts[1][columns] += 1
        expected = np.outer(*counts)
        phi = (together - expected / max(1, len(pairs))) / np.sqrt(np.maximum(expected, 1))
        self._phi = np.where(together >= _FEWEST, phi, 0)

    def scores(self, pairs: Sequence[FeaturePair], lines: int) -> NDArray[np.float64]:
        """Return how strongly source n is associated with target n + lines, for each n for which both exist."""
        rows = [_indices(source, self._sources) for source, _ in pairs]
        columns = [_indices(target, self._targets) for _, target in pairs]
        scores = []
        for row in range(max(0, -lines), len(pairs) - max(0, lines)):
            source, target = pairs[row][0], pairs[row + lines][1]
            linked = self._phi[rows[row][:, None], columns[row + lines]].sum()
            size = max(1, len(source) * len(target))
            scores.append((linked + _SHARED * len(source & target)) / sqrt(size))
        return np.array(scores)


def _frequent(texts: Iterable[Features]) -> dict[str, int]:
    """Return the indices of the most frequent features. Features of equal frequency are in alphabetical order."""
    counts = Counter(feature for text in texts for feature in text)
    chosen = sorted(counts, key=lambda feature: (-counts[feature], feature))[:_VOCABULARY]
    return {feature: index for index, feature in enumerate(chosen)}


def _indices(text: Features, known: dict[str, int]) -> NDArray[np.intp]:
    return np.array([known[feature] for feature in text if feature in known], np.intp)


def shifted_pairs(pairs: Sequence[FeaturePair], lines: int) -> list[FeaturePair]:
    """Return the pairs of source n and target n + lines."""
    rows = range(max(0, -lines), len(pairs) - max(0, lines))
    return [(pairs[row][0], pairs[row + lines][1]) for row in rows]
