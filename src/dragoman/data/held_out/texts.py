"""`RankedTexts` and `choose_rows` choose held-out documents and labelled examples by their text.

Each text has a random rank that depends on the text and the seed only. Near-duplicates have the same key
(`sentence_key`) and the same rank, so they are together in one set, and the order of a corpus does not matter.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from dragoman.data.held_out.config import Sizes

_CANDIDATES = 4
"""Number of candidates per text that is held out, among which those without duplicates are preferred."""


def _rank(key: int, seed: int, purpose: str) -> int:
    return int.from_bytes(blake2b(f"{purpose} {seed} {key}".encode(), digest_size=8).digest(), "little")


class RankedTexts:
    """The distinct texts of the lowest ranks, and how often each occurs. Memory does not grow with the corpus."""

    def __init__(self, most: int, seed: int) -> None:
        """most: maximum number of texts that may be held out."""
        self._most, self._seed = _CANDIDATES * most, seed
        self._texts: dict[int, str] = {}
        self._counts = Counter[int]()
        self._heap: list[tuple[int, int]] = []

    def add(self, key: int, text: str) -> None:
        """Add a text with its key."""
        if key in self._texts:
            self._counts[key] += 1
            return
        rank = _rank(key, self._seed, "choice")
        if len(self._heap) >= self._most and rank > -self._heap[0][0]:
            return
        self._texts[key], self._counts[key] = text, 1
        heapq.heappush(self._heap, (-rank, key))
        if len(self._heap) > self._most:
            _, removed = heapq.heappop(self._heap)
            del self._texts[removed], self._counts[removed]

    def choose(self, sizes: Sizes) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the texts of a validation and a test set, those with the fewest duplicates first."""
        seed = self._seed
        chosen = sorted(self._texts, key=lambda key: (self._counts[key], _rank(key, seed, "choice")))[: sum(sizes)]
        chosen.sort(key=lambda key: _rank(key, seed, "division"))
        valid = chosen[: min(sizes.valid, len(chosen) - min(sizes.test, len(chosen) // 2))]
        return tuple(map(self._texts.__getitem__, valid)), tuple(map(self._texts.__getitem__, chosen[len(valid) :]))


def choose_rows(
    keys: Sequence[int], labels: Sequence[Iterable[str]], sizes: Sizes, seed: int
) -> tuple[list[int], list[int]]:
    """Return the rows of a validation and a test set of labelled examples. All rows with one key are in one set.

    keys: of the text of each example. labels: of each example; every label remains in at least one training example.
    Texts with more examples than a set are not chosen. A set can be smaller than intended.
    """
    groups: dict[int, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    remaining = Counter(label for each in labels for label in set(each))
    order = sorted(groups, key=lambda key: _rank(key, seed, "choice"))
    sets = []
    for size in sizes:
        rows, left = list[int](), list[int]()
        for key in order:
            group = groups[key]
            lost = Counter(label for row in group for label in set(labels[row]))
            if len(rows) + len(group) <= size and all(remaining[label] > count for label, count in lost.items()):
                rows += group
                remaining -= lost
            else:
                left.append(key)
        order = left
        sets.append(sorted(rows))
    return sets[0], sets[1]
