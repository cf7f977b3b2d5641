"""Detection of a corpus in which the two languages are mixed up: in some pairs, source and target are exchanged."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.data.corpora.items import Pair
from dragoman.data.held_out.sides import Sides

_MIN_FRACTION, _MIN_PAIRS = 0.02, 5
"""Minimum fraction and number of exchanged pairs. Fewer may be names and quotations in the other language."""

_SAMPLE, _SAMPLE_EVERY = 2000, 16
_MAX_ROUNDS = 10
_SHOWN = 3


@dataclass(frozen=True)
class MixedSides:
    """The exchanged pairs of a corpus.

    fraction: of the pairs of a sample. lines: of the first ones. pairs: number of pairs of the corpus, or 0 if the
    sample is all that is known of it.
    """

    fraction: float
    lines: tuple[int, ...]
    pairs: int = 0

    def describe(self) -> str:
        """Return a description, as the end of a sentence about a corpus."""
        lines = ", ".join(map(str, self.lines))
        number = f" (about {round(self.fraction * self.pairs):,} of {self.pairs:,})" if self.pairs else ""
        return (
            f"source and target seem to be exchanged in {self.fraction:.0%} of the pairs{number}, such as those of "
            f"lines {lines}: exchange the two sides there, so that each side is in one language"
        )


class MixedSidesDetector:
    """Examines a sample of the pairs of a corpus that is read: all of the first, then every n-th."""

    def __init__(self) -> None:
        self._sample: list[tuple[int, str, str]] = []
        self._count = 0

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield all pairs unchanged."""
        for index, pair in enumerate(pairs):
            self._count = index + 1
            is_chosen = index < _SAMPLE // 2 or index % _SAMPLE_EVERY == 0
            if is_chosen and pair.complete and len(self._sample) < _SAMPLE:
                self._sample.append((pair.line, pair.source, pair.target))
            yield pair

    def finish(self) -> MixedSides | None:
        """Return the exchanged pairs of the sample, as `find_mixed` does."""
        found = find_mixed(self._sample)
        return None if found is None else replace(found, pairs=self._count)


def find_mixed(sample: Sequence[tuple[int, str, str]]) -> MixedSides | None:
    """Return the exchanged pairs of a sample of lines with their pairs; None if each side is in one language.

    The profiles of both sides and the order of each pair are estimated in turn, as in clustering by hard EM: first from
    all pairs in the given order, and if this does not distinguish the sides, as when half of the pairs are exchanged,
    starting from the longest pair. Returns None, too, if two languages cannot be distinguished.
    """
    pairs = [(source, target) for _, source, target in sample]
    if not pairs:
        return None
    longest = max(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    for start in (pairs, [longest, longest]):
        exchanged = _estimate(pairs, start)
        ordered = [pair[::-1] if is_exchanged else pair for pair, is_exchanged in zip(pairs, exchanged, strict=True)]
        if Sides(ordered).are_distinct:
            break
    else:
        return None
    if 2 * sum(exchanged) > len(pairs):  # which order is the usual one is decided by the majority
        exchanged = [not each for each in exchanged]
    lines = [line for (line, _, _), is_exchanged in zip(sample, exchanged, strict=True) if is_exchanged]
    if len(lines) < max(_MIN_PAIRS, _MIN_FRACTION * len(pairs)):
        return None
    return MixedSides(len(lines) / len(pairs), tuple(lines[:_SHOWN]))


def _estimate(pairs: Sequence[tuple[str, str]], start: Sequence[tuple[str, str]]) -> list[bool]:
    """Return whether each pair is exchanged. start: pairs in the right order, from which the estimation starts."""
    sides, exchanged = Sides(start, check=False), list[bool]()
    for _ in range(_MAX_ROUNDS):
        found = [sides.is_exchanged(*pair) for pair in pairs]
        if found == exchanged:
            break
        exchanged = found
        ordered = [pair[::-1] if each else pair for pair, each in zip(pairs, exchanged, strict=True)]
        sides = Sides(ordered, check=False)
    return exchanged
