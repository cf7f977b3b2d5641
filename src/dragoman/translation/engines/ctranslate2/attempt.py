"""`Attempt`: a row that CTranslate2 is to search, and how attempts make batches."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dragoman.decode.search import SearchConfig
from dragoman.translation.engine import Row

_LARGEST_BATCH = 1 << 24
"""Rows · length²: 64 rows of 512 tokens, whose attention in 8 heads is half a gigabyte."""


class Found(NamedTuple):
    """A hypothesis as it comes from CTranslate2: tokens without EOS, and the sum of its log-probabilities."""

    tokens: tuple[int, ...]
    total: float
    finished: bool


@dataclass(frozen=True)
class Attempt:
    """A row to be searched.

    limit: our longest output in tokens, its end counted. steps: how many are written at least before the search ends;
    None: as many as are usually enough. exactly: no more than these either. restricted: whether what must not be
    written is taken out.
    """

    place: int
    row: Row
    limit: int
    steps: int | None = None
    exactly: bool = False
    restricted: bool = False

    @property
    def config(self) -> SearchConfig:
        """How it is searched."""
        assert isinstance(self.row.decoding, SearchConfig)
        return self.row.decoding

    @property
    def together(self) -> Hashable:
        """What rows of one call of CTranslate2 have in common."""
        config = self.config
        return (
            config.beam,
            config.minimum_length,
            bool(self.row.prefix.ids),
            frozenset(config.forbid) if self.restricted else None,
            self.steps if self.exactly else None,
        )

    @property
    def longest(self) -> int:
        """Tokens of the source or of what is written, their end counted, whichever may be more."""
        return max(len(self.row.source) + 1, self.steps or 0)

    @property
    def sums_are_ours(self) -> bool:
        """Whether CTranslate2 sums the log-probabilities that our search would sum."""
        return not (self.restricted or self.row.prefix.ids or self.config.minimum_length)


@dataclass(frozen=True)
class Batch:
    """Attempts that are computed together, and their results to come."""

    attempts: list[Attempt]
    steps: int
    results: list[Any]


def in_batches(attempts: Iterable[Attempt], size: int) -> list[list[Attempt]]:
    """Those that go together, of like length. The batch of the first row comes first."""
    together: dict[Hashable, list[Attempt]] = {}
    for attempt in attempts:
        together.setdefault(attempt.together, []).append(attempt)
    batches: list[list[Attempt]] = []
    for each in together.values():
        batches += _chunks(sorted(each, key=lambda attempt: attempt.longest), size)
    return sorted(batches, key=lambda batch: min(attempt.place for attempt in batch))


def _chunks(attempts: Iterable[Attempt], size: int) -> Iterator[list[Attempt]]:
    """In their order, as many at a time as there may be; of long ones fewer, since attention grows with the square."""
    batch: list[Attempt] = []
    longest = 0
    for attempt in attempts:
        longest = max(longest, attempt.longest)
        if batch and (len(batch) == size or (len(batch) + 1) * longest**2 > _LARGEST_BATCH):
            yield batch
            batch = []
        batch.append(attempt)
    if batch:
        yield batch
