"""`RankedTexts` and `choose_rows` choose held-out documents and labelled examples by their text.

Each text has a random rank that depends on the text and the seed only. Near-duplicates have the same key
(`sentence_key`) and the same rank, so they are together in one set, and the order of a corpus does not matter.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.held_out.config import Sizes

_CANDIDATES = 4
"""Number of candidates per text that is held out, among which those without duplicates are preferred."""

_LARGEST_FRACTION = 3
"""A text with more examples than a set is held out alone, if these are at most one of this number of all examples."""


@dataclass(frozen=True)
class TextKeys:
    """The keys (`sentence_key`) of the texts of validation and of test sets."""

    valid: frozenset[int] = frozenset()
    test: frozenset[int] = frozenset()

    def __or__(self, other: "TextKeys") -> "TextKeys":
        return TextKeys(self.valid | other.valid, self.test | other.test)

    @property
    def all(self) -> frozenset[int]:
        """The keys of all sets."""
        return self.valid | self.test

    @property
    def excluded(self) -> SentenceKeys | None:
        """The texts that must not be in training text, or None if there are none."""
        return SentenceKeys(self.all, frozenset()) if self.all else None


NO_KEYS = TextKeys()


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
    keys: Sequence[int],
    labels: Sequence[Iterable[str]],
    sizes: Sizes,
    seed: int,
    *,
    known: TextKeys = NO_KEYS,
    titles: Sequence[str] = (),
) -> tuple[list[int], list[int]]:
    """Return the rows of a validation and a test set of labelled examples. All rows with one key are in one set.

    keys: of the text of each example. labels: of each example; every label remains in at least one training example.
    Texts with more examples than a set are not chosen, unless there are no others. A set can be smaller than intended.
    known: other sets; their validation texts are not chosen for testing, and vice versa. titles: those of the articles
    that contain the texts, which stay together, too; "" for a text without an article.
    """
    groups = _group(keys, titles)
    remaining = Counter(label for each in labels for label in set(each))
    order = sorted(groups, key=lambda key: _rank(key, seed, "choice"))
    sets = []
    for size, excluded in zip(sizes, (known.test, known.valid), strict=True):
        candidates = [key for key in order if not any(keys[row] in excluded for row in groups[key])]
        chosen = _fill(candidates, groups, labels, remaining, size)
        if size and candidates and not chosen:
            smallest = min(len(groups[key]) for key in candidates)
            if _LARGEST_FRACTION * smallest <= len(keys):
                chosen = _fill(candidates, groups, labels, remaining, smallest)
        order = [key for key in order if key not in chosen]
        sets.append(sorted(row for key in chosen for row in groups[key]))
    return sets[0], sets[1]


def _group(keys: Sequence[int], titles: Sequence[str]) -> dict[int, list[int]]:
    """Return the rows that stay together, by one of their keys."""
    leaders: dict[int, int] = {}

    def leader(key: int) -> int:
        while (other := leaders.get(key, key)) != key:
            key = other
        return key

    first: dict[str, int] = {}
    for key, title in zip(keys, titles, strict=False):
        if title:
            lower, higher = sorted((leader(key), leader(first.setdefault(title, key))))
            if lower != higher:
                leaders[higher] = lower
    groups: dict[int, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(leader(key), []).append(row)
    return groups


def _fill(
    order: Iterable[int],
    groups: Mapping[int, Sequence[int]],
    labels: Sequence[Iterable[str]],
    remaining: Counter[str],
    size: int,
) -> set[int]:
    """Return the keys of a set of at most `size` examples, in the given order.

    groups: the rows of each key. remaining: number of training examples with each label, which is reduced.
    """
    chosen, count = set[int](), 0
    for key in order:
        lost = Counter(label for row in groups[key] for label in set(labels[row]))
        if count + len(groups[key]) <= size and all(remaining[label] > each for label, each in lost.items()):
            chosen.add(key)
            count += len(groups[key])
            remaining -= lost
    return chosen
