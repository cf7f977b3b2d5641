"""`Sides`: the languages of both sides of the training pairs, with which other pairs are compared."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

_SMOOTHING = 0.5
_MIN_DISTINCT = 0.9
"""Minimum fraction of training texts that must be more similar to their own side than to the other one."""

_MIN_FRACTION = 0.7
"""Minimum fraction of the texts that must be more similar to the other side."""

_MIN_KNOWN = 0.6
"""Minimum fraction of the sequences of a text that occur on a side of the training pairs."""

_MIN_TEXTS = 5
_ORDER = 3


class LetterProfile:
    """The frequencies of the sequences of three characters in a list of texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.counts = Counter(sequence for text in texts for sequence in _sequences(text))
        self._total = self.counts.total() + _SMOOTHING * (len(self.counts) + 1)

    def log_probability(self, sequence: str) -> float:
        """Return the log-probability of a sequence of characters in nats."""
        return log((self.counts[sequence] + _SMOOTHING) / self._total)


def _sequences(text: str) -> list[str]:
    padded = f" {text.strip().casefold()} "
    return [padded[start : start + _ORDER] for start in range(len(padded) - _ORDER + 1)]


@dataclass(frozen=True)
class Reversal:
    """Fractions of the texts of each side that are more similar to the other side of the training pairs."""

    sources: float
    targets: float

    @property
    def is_swapped(self) -> bool:
        """Whether the two sides are swapped."""
        return min(self.sources, self.targets) >= _MIN_FRACTION

    def describe(self) -> str | None:
        """Return a description, as the end of a sentence about a corpus; None if both sides are as expected."""
        if self.is_swapped:
            return (
                f"source and target seem to be swapped: {self.sources:.0%} of the sources are more similar to the "
                f"training targets, and {self.targets:.0%} of the targets to the training sources"
            )
        if self.sources >= _MIN_FRACTION:
            return f"{self.sources:.0%} of the sources are more similar to the training targets than to the sources"
        if self.targets >= _MIN_FRACTION:
            return f"{self.targets:.0%} of the targets are more similar to the training sources than to the targets"
        return None


class Sides:
    """Profiles of both sides of the training pairs."""

    def __init__(self, pairs: Sequence[tuple[str, str]], check: bool = True) -> None:
        """pairs: a sample. check: whether every other pair is used to check that the sides can be distinguished."""
        known, held_out = (pairs[::2], pairs[1::2]) if check else (pairs, [])
        source, target = (LetterProfile(pair[side] for pair in known) for side in (0, 1))
        self._preferences = {
            sequence: target.log_probability(sequence) - source.log_probability(sequence)
            for sequence in source.counts.keys() | target.counts.keys()
        }
        """By how many nats each sequence is more probable on the target side than on the source side."""
        own = self._compare(held_out)
        self.are_distinct = own is not None and max(own.sources, own.targets) <= 1 - _MIN_DISTINCT

    def compare(self, pairs: Sequence[tuple[str, str]]) -> Reversal | None:
        """Return how similar pairs are to the other side; None if the sides cannot be distinguished."""
        return self._compare(pairs) if self.are_distinct else None

    def is_exchanged(self, source: str, target: str) -> bool:
        """Return whether a pair is more similar to the training pairs with its sides exchanged."""
        return self._preference(source) > self._preference(target)

    def _compare(self, pairs: Sequence[tuple[str, str]]) -> Reversal | None:
        # texts that are the same on both sides, such as names, have no direction
        differing = [pair for pair in pairs if pair[0].strip() != pair[1].strip() and all(map(str.strip, pair))]
        if len(differing) < _MIN_TEXTS:
            return None
        sources = sum(self._preference(source) > 0 for source, _ in differing)
        targets = sum(self._preference(target) < 0 for _, target in differing)
        return Reversal(sources / len(differing), targets / len(differing))

    def _preference(self, text: str) -> float:
        """Return by how many nats a text is more probable on the target side than on the source side.

        Returns 0 for a text most of which is unlike both sides, such as a text in a third language.
        """
        sequences = _sequences(text)
        known = [self._preferences[sequence] for sequence in sequences if sequence in self._preferences]
        return sum(known) if len(known) >= _MIN_KNOWN * len(sequences) else 0.0
