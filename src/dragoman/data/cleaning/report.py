"""`CleaningReport`: the numbers and lines of the pairs or documents that each cleaning rule dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RULES = (
    "missing_language",
    "broken_utf8",
    "empty",
    "control_characters",
    "max_characters",
    "max_words",
    "max_tokens",
    "max_ratio",
    "copied_words",
    "wrong_script",
    "duplicates",
    "duplicates_between",
)
"""The rules, with the names of their settings, in the order of the table. Each item counts for only one rule."""

LENGTH_LIMITS = ("max_characters", "max_words", "max_tokens")
"""The rules that limit the length of texts."""

MARKED = ("pairs_with_placeholders", "placeholders", "pairs_with_terms", "terms")
"""Names of the counts for `data.placeholders` and `data.terminology`."""

_TITLES = {
    "missing_language": "a language missing",
    "broken_utf8": "broken UTF-8",
    "empty": "empty side",
    "control_characters": "control characters",
    "max_characters": "too many characters",
    "max_words": "too many words",
    "max_tokens": "too many tokens",
    "max_ratio": "length ratio",
    "copied_words": "copied source",
    "wrong_script": "wrong script",
    "duplicates": "duplicate pair",
    "duplicates_between": "in another corpus",
}
_DOCUMENT_TITLES = {"empty": "empty", "duplicates": "duplicate document"}


@dataclass(frozen=True)
class CleaningReport:
    """Result of cleaning a corpus.

    total: number of items that were read. dropped: for each rule, the lines (int64, counted from 1, ascending) at which
    the dropped items start, possibly memory-mapped. unit: pairs or documents. marked: the counts named in `MARKED`;
    empty without placeholders and terminology.
    """

    total: int
    dropped: Mapping[str, NDArray[np.int64]]
    unit: str = "pairs"
    marked: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Number of items that each rule dropped, in the order of the rules, without rules that dropped no items."""
        return {rule: len(self.dropped[rule]) for rule in RULES if rule in self.dropped}

    @property
    def kept(self) -> int:
        """Number of kept items."""
        return self.total - sum(self.counts.values())

    def table(self, lines: int | None = 5) -> str:
        """Format the report as a table with one row per rule and the first `lines` line numbers (None: all)."""
        share = 100 * self.kept / self.total if self.total else 0.0
        titles = _TITLES if self.unit == "pairs" else _TITLES | _DOCUMENT_TITLES
        unit = self.unit.removesuffix("s") if self.total == 1 else self.unit
        rows = [f"{self.total:,} {unit} read, {self.kept:,} kept ({share:.2f} %)"]
        for rule, count in self.counts.items():
            numbers = self.dropped[rule][:lines].tolist()
            more = ", …" if len(numbers) < count else ""
            rows.append(f"  {titles[rule]:<20} {count:>10,}   lines {', '.join(map(str, numbers))}{more}")
        for pairs, name in (MARKED[:2], MARKED[2:]):
            if self.marked.get(pairs):
                rows.append(f"  with {name:<15} {self.marked[pairs]:>10,}   pairs, {self.marked[name]:,} {name}")
        return "\n".join(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        dropped = {rule: lines.tolist() for rule, lines in self.dropped.items()}
        return {self.unit: self.total, "dropped": dropped, **self.marked}

    @staticmethod
    def file(folder: Path, rule: str) -> Path:
        """Return the path of the file with the line numbers of a rule, stored as int64."""
        return folder / f"dropped.{rule}.bin"

    @classmethod
    def from_files(cls, folder: Path, total: int, counts: Mapping[str, int], unit: str = "pairs") -> "CleaningReport":
        """Open a report with memory-mapped line numbers. Raises OSError or ValueError for a missing or damaged file."""
        dropped = {
            rule: np.memmap(cls.file(folder, rule), np.int64, "r", shape=(count,)).view(np.ndarray)
            for rule, count in counts.items()
            if count
        }
        return cls(total, dropped, unit)
