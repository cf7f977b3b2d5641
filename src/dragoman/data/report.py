"""`CleaningReport`: how many pairs each cleaning rule dropped, and where they stand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RULES = (
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
)
"""The rules, named as their options, in the order of the table; a pair counts for one of them."""

LENGTH_LIMITS = ("max_characters", "max_words", "max_tokens")
"""The rules that a long text breaks."""

_TITLES = {
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
}


@dataclass(frozen=True)
class CleaningReport:
    """pairs: read in all; dropped: line numbers (int64, counted from 1, ascending) by rule."""

    pairs: int
    dropped: Mapping[str, NDArray[np.int64]]

    @property
    def counts(self) -> dict[str, int]:
        """Dropped pairs by rule, in the order of the rules; only rules that dropped any."""
        return {rule: len(self.dropped[rule]) for rule in RULES if rule in self.dropped}

    @property
    def kept(self) -> int:
        """Pairs that stay."""
        return self.pairs - sum(self.counts.values())

    @property
    def keep(self) -> NDArray[np.bool_]:
        """(pairs,) bool: which pairs stay."""
        keep = np.ones(self.pairs, dtype=bool)
        for lines in self.dropped.values():
            keep[lines - 1] = False
        return keep

    def adding(self, rule: str, lines: NDArray[np.int64]) -> "CleaningReport":
        """The same report with pairs that only a later step could judge."""
        return CleaningReport(self.pairs, {**self.dropped, rule: lines}) if len(lines) else self

    def table(self, lines: int | None = 5) -> str:
        """A table for people: a line a rule, with the first `lines` line numbers (None: all of them)."""
        share = 100 * self.kept / self.pairs if self.pairs else 0.0
        rows = [f"{self.pairs:,} pairs read, {self.kept:,} kept ({share:.2f} %)"]
        for rule, count in self.counts.items():
            numbers = self.dropped[rule][:lines].tolist()
            more = ", …" if len(numbers) < count else ""
            rows.append(f"  {_TITLES[rule]:<20} {count:>10,}   lines {', '.join(map(str, numbers))}{more}")
        return "\n".join(rows)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {"pairs": self.pairs, "dropped": {rule: lines.tolist() for rule, lines in self.dropped.items()}}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "CleaningReport":
        """What `to_json` gave. Raises KeyError, TypeError or ValueError when it is something else."""
        dropped = {rule: np.array(values["dropped"][rule], dtype=np.int64) for rule in values["dropped"]}
        return cls(int(values["pairs"]), dropped)
