"""`PhraseTable`: target phrases of source phrases with their features, estimated from extracted phrase pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.models.kinds.statistical import PhraseBasedConfig
from dragoman.statistical.phrases import library
from dragoman.statistical.phrases.aligned_corpus import AlignedCorpus, Ids, WordIds, concatenate
from dragoman.statistical.phrases.extraction import Occurrences, Trie, build_trie

_SMOOTHING = 0.5
"""Count that is added for each orientation."""


@dataclass(frozen=True)
class PhraseTable:
    """Phrase pairs in the layout of the phrase library (see `source/phrases/interface.h`), which may be memory-mapped.

    words, child_starts, pair_starts: the trie of source phrases and the first pair of each node. targets: (P), the
    target phrase of each pair. target_starts, target_words: the target phrases. features: (P, F) float32, logarithms.
    reordering: (P, 6) float32, or None: log-probabilities that the previous phrase is monotone, swapped or
    discontinuous, and the same of the next phrase. max_length: maximum number of source words.
    """

    words: Ids
    child_starts: Ids
    pair_starts: Ids
    targets: Ids
    target_starts: Ids
    target_words: Ids
    features: NDArray[np.float32]
    reordering: NDArray[np.float32] | None
    max_length: int

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def native(self) -> library.PhraseTable:
        """The table as a structure of the library."""
        sizes = {"table_features": self.features.shape[1], "max_length": self.max_length}
        return library.PhraseTable.of(self.arrays, **sizes)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the table, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    def translations(self, source: tuple[int, ...]) -> list[tuple[tuple[int, ...], list[float]]]:
        """Return the target phrases of a source phrase with their features, in the order of the table."""
        node = 0
        for word in source:
            first, last = int(self.child_starts[node]), int(self.child_starts[node + 1])
            node = first + int(np.searchsorted(self.words[first:last], word))
            if node >= last or self.words[node] != word:
                return []
        found = []
        for pair in range(int(self.pair_starts[node]), int(self.pair_starts[node + 1])):
            target = self.targets[pair]
            words = self.target_words[self.target_starts[target] : self.target_starts[target + 1]]
            found.append((tuple(words.tolist()), self.features[pair].tolist()))
        return found


@dataclass(frozen=True)
class _Counts:
    """Distinct phrase pairs (P,), sorted by source node.

    source, target: nodes. count: number of occurrences. order, starts: occurrences sorted by pair, and the first one of
    each pair.
    """

    source: Ids
    target: Ids
    count: Ids
    order: NDArray[np.uint32]
    starts: NDArray[np.uint32]

    @classmethod
    def of(cls, source: Ids, target: Ids) -> "_Counts":
        order = np.lexsort((target, source)).astype(np.uint32)
        source, target = source[order], target[order]
        is_first = np.ones(len(order), bool)
        is_first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        starts = np.flatnonzero(is_first).astype(np.uint32)
        count = np.diff(starts, append=np.uint32(len(order))).astype(np.int32)
        return cls(source[starts], target[starts], count, order, starts)


def estimate_table(
    corpus: AlignedCorpus, occurrences: Occurrences, method: PhraseBasedConfig, options: int
) -> PhraseTable:
    """Estimate the phrase table of a method.

    Features: log φ(f|e), log lex(f|e), log φ(e|f), log lex(e|f) (Koehn et al. 2003), and log-probabilities of the
    orientations of the previous and the next phrase, smoothed by 0.5 per orientation (Koehn et al. 2005). options:
    maximum number of target phrases per source phrase; those with the highest φ(e|f) are kept. The arrays of
    `occurrences` are freed as soon as possible if the caller does not hold them.
    """
    source_trie, source = build_trie(corpus.source, occurrences.source, occurrences.source_length)
    target_trie, target = build_trie(corpus.target, occurrences.target, occurrences.target_length)
    lexical = occurrences.source_given_target, occurrences.target_given_source
    orientations = (occurrences.previous, occurrences.next) if method.reordering else ()
    del occurrences
    counts = _Counts.of(source, target)
    del source, target
    estimate = _discounted if method.smoothing else _relative
    direct = estimate(counts.count, counts.source, counts.target)
    kept = _best_options(counts.source, direct, options)
    features = np.empty((len(kept), 4), np.float32)
    features[:, 2] = np.log(direct[kept])
    del direct
    features[:, 0] = np.log(estimate(counts.count, counts.target, counts.source)[kept])
    for column, values in zip((1, 3), lexical, strict=True):
        if len(values):
            features[:, column] = np.maximum.reduceat(values[counts.order], counts.starts)[kept]
    del lexical, values
    reordering = np.empty((len(kept), 3 * len(orientations)), np.float32)
    for side, each in enumerate(orientations):
        sorted_kinds = each[counts.order]
        for kind in range(3):
            reordering[:, 3 * side + kind] = _orientation(sorted_kinds == kind, counts)[kept]
    source_nodes, target_nodes = counts.source[kept], counts.target[kept]
    del counts, kept
    stored = reordering if orientations else None
    return _assemble(
        source_trie,
        target_trie,
        source_nodes,
        target_nodes,
        features=features,
        reordering=stored,
        max_length=method.max_phrase_length,
    )


class Phrases(NamedTuple):
    """Word sequences: the sequence of n is words[starts[n] : starts[n] + lengths[n]]."""

    words: Ids
    starts: NDArray[np.int64]
    lengths: NDArray[np.int8]

    @classmethod
    def of(cls, sequences: Sequence[WordIds]) -> "Phrases":
        """Store word sequences one after the other."""
        words, starts = concatenate(sequences)
        return cls(words, starts[:-1], np.diff(starts).astype(np.int8))


def build_table(sources: Phrases, targets: Phrases, features: NDArray[np.float32], max_length: int) -> PhraseTable:
    """Return a table of N different phrase pairs in any order. features: (N, F), logarithms."""
    source_trie, source = build_trie(*sources)
    target_trie, target = build_trie(*targets)
    order = np.argsort(source, kind="stable")
    return _assemble(
        source_trie,
        target_trie,
        source[order],
        target[order],
        features=features[order],
        reordering=None,
        max_length=max_length,
    )


def _assemble(
    source: Trie,
    target: Trie,
    source_nodes: Ids,
    target_nodes: Ids,
    *,
    features: NDArray[np.float32],
    reordering: NDArray[np.float32] | None,
    max_length: int,
) -> PhraseTable:
    """Build a table of phrase pairs sorted by source node. Target phrases without a pair are removed."""
    is_used = np.zeros(len(target.words), bool)
    is_used[target_nodes] = True
    used = np.flatnonzero(is_used)
    targets = (np.cumsum(is_used, dtype=np.int32) - 1)[target_nodes]
    words, starts = target.sequences()
    lengths = np.diff(starts)[used]
    target_starts = np.zeros(len(used) + 1, np.int32)
    np.cumsum(lengths, out=target_starts[1:])
    positions = np.repeat(starts[used] - target_starts[:-1], lengths) + np.arange(target_starts[-1], dtype=np.int32)
    pair_starts = np.searchsorted(source_nodes, np.arange(len(source.words) + 1)).astype(np.int32)
    return PhraseTable(
        source.words,
        source.child_starts,
        pair_starts,
        targets,
        target_starts,
        words[positions],
        features,
        reordering,
        max_length,
    )


def _relative(count: Ids, given: Ids, other: Ids) -> NDArray[np.float64]:
    """Return count / count(given)."""
    totals = np.bincount(given, count)
    return np.asarray(count / totals[given])


def _discounted(count: Ids, given: Ids, other: Ids) -> NDArray[np.float64]:
    """Return p(other | given) with modified Kneser–Ney discounts (Foster et al. 2006, equations 6 and 7).

    The discounts depend on the count (1, 2, 3 or more); the lower-order distribution is the fraction of the other
    phrase among all distinct pairs.
    """
    levels = np.minimum(count, 3)
    n1, n2, n3, n4 = (float((count == number).sum()) for number in (1, 2, 3, 4))
    if min(n1, n2, n3) == 0:
        return _relative(count, given, other)
    ratio = n1 / (n1 + 2 * n2)
    discounts = np.array([0, 1 - 2 * ratio * n2 / n1, 2 - 3 * ratio * n3 / n2, 3 - 4 * ratio * n4 / n3])
    discounts = discounts.clip(0, 0.999 * np.arange(4))  # a probability must remain for every pair
    discount = discounts[levels]
    totals = np.bincount(given, count)
    removed = np.bincount(given, discount)
    lower = np.bincount(other)[other] / len(count)
    return np.asarray((count - discount + removed[given] * lower) / totals[given])


def _orientation(occurs: NDArray[np.bool_], counts: _Counts) -> NDArray[np.float64]:
    """Return the log-probability (P,) of an orientation. occurs: whether each occurrence, sorted by pair, has it."""
    occurrences = np.add.reduceat(occurs, counts.starts, dtype=np.int32)
    return np.asarray(np.log((occurrences + _SMOOTHING) / (counts.count + 3 * _SMOOTHING)))


def _best_options(source: Ids, probabilities: NDArray[np.float64], options: int) -> NDArray[np.uint32]:
    """Return the indices of the most probable pairs of each source phrase, sorted by source, then by probability."""
    order = np.lexsort((-probabilities, source))
    ordered = source[order]
    first = np.searchsorted(ordered, ordered)
    return order[np.arange(len(order)) - first < options].astype(np.uint32)
