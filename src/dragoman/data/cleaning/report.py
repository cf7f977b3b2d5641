"""`CleaningReport`: the numbers and lines of the pairs or documents that each cleaning rule dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.text.unknown_tokens import UnknownTokens

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
    "final_punctuation",
    "held_out",
    "wrong_script",
    "duplicates",
    "duplicates_between",
    "mismatched",
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
    "final_punctuation": "punctuation at the end",
    "held_out": "held out, or alike",
    "wrong_script": "wrong script",
    "duplicates": "duplicate pair",
    "duplicates_between": "in another corpus",
    "mismatched": "mismatched sides",
}
_DOCUMENT_TITLES = {"empty": "empty", "duplicates": "duplicate document"}


SETTING = "data.cleaning.{}"
"""The name of the setting of a rule."""

_MAX_KINDS = 30
"""Maximum number of kinds of characters or escapes that the table lists per setting."""

_FOUND_TITLES = {
    "control_characters": "replaced or removed by data.cleaning.control_characters:",
    "unescape": "escaped characters, which data.cleaning.unescape=true replaces:",
}


class FindingCount(NamedTuple):
    """Number of lines with a kind of character or escape. setting: the setting that concerns it. side: name of the
    side, such as a file name. name: such as `U+000C form feed` or `&quot;`. lines: number of lines.
    """

    setting: str
    side: str
    name: str
    lines: int


@dataclass(frozen=True)
class CleaningReport:
    """Result of cleaning a corpus.

    total: number of items that were read. dropped: for each rule, the lines (int64, counted from 1, ascending) at which
    the dropped items start, possibly memory-mapped. unit: pairs or documents. marked: the counts named in `MARKED`;
    empty without placeholders and terminology. found: the control characters and escapes in the corpus, and the lines
    (int64) of each kind. details: explanations of single rules. unknown: the numbers of unknown tokens of each side;
    empty before tokenisation, and for vocabularies without unknown tokens.
    """

    total: int
    dropped: Mapping[str, NDArray[np.int64]]
    unit: str = "pairs"
    marked: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[FindingCount, NDArray[np.int64]] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, UnknownTokens] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Number of items that each rule dropped, in the order of the rules, without rules that dropped no items."""
        return {rule: len(self.dropped[rule]) for rule in RULES if rule in self.dropped}

    @property
    def kept(self) -> int:
        """Number of kept items."""
        return self.total - sum(self.counts.values())

    @property
    def unsuitable(self) -> int:
        """Number of items that were dropped for another reason than that they are held out."""
        return self.total - self.kept - self.counts.get("held_out", 0)

    def table(self, lines: int | None = 5) -> str:
        """Format the report as a table with one row per rule and the first `lines` line numbers (None: all)."""
        fraction = 100 * self.kept / self.total if self.total else 0.0
        titles = _TITLES if self.unit == "pairs" else _TITLES | _DOCUMENT_TITLES
        unit = self.unit.removesuffix("s") if self.total == 1 else self.unit
        rows = [f"{self.total:,} {unit} read, {self.kept:,} kept ({fraction:.2f} %)"]
        for rule, count in self.counts.items():
            numbers = self.dropped[rule][:lines].tolist()
            more = _continued(len(numbers), count)
            rows.append(f"  {titles[rule]:<20} {count:>10,}   lines {', '.join(map(str, numbers))}{more}")
            if rule in self.details:
                rows.append(f"    {self.details[rule]}")
        for pairs, name in (MARKED[:2], MARKED[2:]):
            if self.marked.get(pairs):
                rows.append(f"  with {name:<15} {self.marked[pairs]:>10,}   pairs, {self.marked[name]:,} {name}")
        for setting, title in _FOUND_TITLES.items():
            kinds = sorted((each for each in self.found if each.setting == setting), key=lambda each: -each.lines)
            rows += [f"  {title}"] * bool(kinds)
            width = max((len(each.name) for each in kinds[:_MAX_KINDS]), default=0)
            for each in kinds[:_MAX_KINDS]:
                numbers = self.found[each][:lines].tolist()
                shown = ", ".join(map(str, numbers)) + _continued(len(numbers), each.lines)
                rows.append(f"    {each.name:<{max(width, 18)}} {each.lines:>10,}   {each.side}, lines {shown}")
            if len(kinds) > _MAX_KINDS:
                rows.append(f"    and {len(kinds) - _MAX_KINDS:,} more kinds")
        if self.unknown:
            fractions = ", ".join(f"{counts.fraction:.2%} of the {side}" for side, counts in self.unknown.items())
            count = sum(counts.unknown for counts in self.unknown.values())
            rows.append(f"  {'unknown tokens':<20} {count:>10,}   {fractions}")
        return "\n".join(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        dropped = {rule: lines.tolist() for rule, lines in self.dropped.items()}
        found = [{**each._asdict(), "lines": lines.tolist()} for each, lines in self.found.items()]
        unknown = {side: counts.fraction for side, counts in self.unknown.items()}
        further = {"found": found, "unknown_tokens": unknown}
        return {
            self.unit: self.total,
            "dropped": dropped,
            **self.marked,
            **{name: value for name, value in further.items() if value},
        }

    @staticmethod
    def file(folder: Path, rule: str) -> Path:
        """Return the path of the file with the line numbers of a rule, stored as int64."""
        return folder / f"dropped.{rule}.bin"

    @staticmethod
    def found_file(folder: Path, index: int) -> Path:
        """Return the path of the file with the line numbers of a kind of character or escape, stored as int64."""
        return folder / f"found.{index}.bin"

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files of a stored report."""
        dropped = (self.file(Path(), rule).name for rule in self.counts)
        return *dropped, *(self.found_file(Path(), index).name for index in range(len(self.found)))

    @classmethod
    def from_files(
        cls,
        folder: Path,
        total: int,
        counts: Mapping[str, int],
        *,
        unit: str = "pairs",
        found: Sequence[FindingCount] = (),
        details: Mapping[str, str] | None = None,
    ) -> "CleaningReport":
        """Open a report with memory-mapped line numbers. Raises OSError or ValueError for a missing or damaged file."""
        dropped = {rule: _open_lines(cls.file(folder, rule), count) for rule, count in counts.items() if count}
        kinds = {each: _open_lines(cls.found_file(folder, index), each.lines) for index, each in enumerate(found)}
        return cls(total, dropped, unit, found=kinds, details=details or {})


def _open_lines(path: Path, count: int) -> NDArray[np.int64]:
    return np.memmap(path, np.int64, "r", shape=(count,)).view(np.ndarray)


def _continued(shown: int, count: int) -> str:
    return ", …" if shown < count else ""
