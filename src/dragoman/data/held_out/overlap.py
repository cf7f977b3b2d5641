"""Overlap of held-out texts with training texts, so that a validation on memorised texts is detected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman.data.cleaning.sentence_keys import normalise

WARNING_FRACTION = 0.01
"""Minimum fraction of the held-out texts whose overlap is a warning. A smaller overlap is only reported, because short
everyday sentences are often repeated."""


@dataclass(frozen=True)
class Overlap:
    """Numbers of held-out items that are also training items.

    total: number of held-out items. exact: items that are identical to a training item. normalised: items that are
    identical after `normalise`, including the exact ones. sources: items whose source alone is in the training corpora
    after `normalise`, including all of the above; None for items with one text.
    """

    total: int
    exact: int
    normalised: int
    sources: int | None = None

    @property
    def is_serious(self) -> bool:
        """Whether the overlap is large enough to distort the scores."""
        return self.normalised > 0 and self.normalised >= WARNING_FRACTION * self.total

    def describe(self, items: str, name: str) -> str | None:
        """Return a message, or None without an overlap. items: plural name of the items. name: of the held-out set."""
        if not self.normalised:
            if self.sources and self.sources >= WARNING_FRACTION * self.total:
                return (
                    f"{name}: the sources of {self.sources:,} of {self.total:,} validation {items} are also in the "
                    "training corpora, with other translations"
                )
            return None
        differing = self.normalised - self.exact
        details = f", {differing:,} of them with other case or spaces" if differing else ""
        message = f"{self.normalised:,} of {self.total:,} validation {items} are also in the training corpora{details}"
        if not self.is_serious:
            return f"{name}: {message}"
        setting = ", or set data.cleaning.held_out=true to leave them out of training" if items == "pairs" else ""
        return (
            f"{name}: {message}. The scores on them show what was memorised, not what was learned, and the selection "
            f"of checkpoints and early stopping depend on them. Remove them from data.train or data.valid{setting}"
        )


class OverlapCounter:
    """Finds held-out items in training items. An item is a tuple of texts, the first of which is its source."""

    def __init__(self, items: Sequence[tuple[str, ...]]) -> None:
        self._items = items
        self._normalised = [tuple(map(normalise, item)) for item in items]
        self._exact = set(items)
        self._by_source: dict[str, set[tuple[str, ...]]] = {}
        for item in self._normalised:
            self._by_source.setdefault(item[0], set()).add(item)
        self._found_exact: set[tuple[str, ...]] = set()
        self._found: set[tuple[str, ...]] = set()
        self._found_sources: set[str] = set()

    def add(self, item: tuple[str, ...]) -> None:
        """Compare a training item with the held-out items."""
        source = normalise(item[0])
        candidates = self._by_source.get(source)
        if candidates is None:
            return
        self._found_sources.add(source)
        if item in self._exact:
            self._found_exact.add(item)
        normalised = (source, *map(normalise, item[1:]))
        if normalised in candidates:
            self._found.add(normalised)

    def add_all(self, items: Iterable[tuple[str, ...]]) -> None:
        """Compare training items with the held-out items."""
        for item in items:
            self.add(item)

    def result(self) -> Overlap:
        """Return the overlap with all items so far. Blank items are not counted."""
        rows = [(item, each) for item, each in zip(self._items, self._normalised, strict=True) if any(each)]
        has_several_texts = any(len(item) > 1 for item in self._items)
        return Overlap(
            total=len(rows),
            exact=sum(item in self._found_exact for item, _ in rows),
            normalised=sum(each in self._found for _, each in rows),
            sources=sum(each[0] in self._found_sources for _, each in rows) if has_several_texts else None,
        )
