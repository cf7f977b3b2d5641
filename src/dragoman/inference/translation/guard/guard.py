"""`Guard`: finds faults in translations by comparing them with their sources."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dragoman.data.lengths import CorpusLengths
from dragoman.inference.translation.guard.copied import is_copied
from dragoman.inference.translation.guard.numbers import changed_numbers
from dragoman.inference.translation.guard.repetition import repeated_phrase
from dragoman.inference.translation.guard.wrong_script import foreign_letters

Kind = Literal["repetition", "empty", "short", "long", "copy", "script", "numbers"]

DESCRIPTIONS: dict[Kind, str] = {
    "repetition": "repeated a phrase",
    "empty": "were empty",
    "short": "were much too short",
    "long": "were much too long",
    "copy": "copied their source",
    "script": "were in a wrong script",
    "numbers": "had other numbers than their source",
}
"""Descriptions of translations with findings of each kind, as the end of a sentence that starts with "N line(s)"."""


class Finding(NamedTuple):
    """A fault in a translation. kind: the kind of fault. what: the affected phrase, letters or numbers."""

    kind: Kind
    what: str


@dataclass(frozen=True)
class GuardOutcome:
    """A guard's findings in the translations of a text, before and after it was searched again.

    found: findings in the best translation of the first search; left: findings in the returned translation; search: the
    name of the search that produced the returned translation (docs/explanation/guard.md), empty for the first.
    """

    found: tuple[Finding, ...]
    left: tuple[Finding, ...]
    search: str = ""

    def outcomes(self) -> dict[str, bool]:
        """Return the description of each kind of finding, and whether the returned translation is free of it."""
        left = {finding.kind for finding in self.left}
        kinds = dict.fromkeys(finding.kind for finding in (*self.found, *self.left))
        return {DESCRIPTIONS[kind]: kind not in left for kind in kinds}


def merge_outcomes(parts: Iterable[GuardOutcome | None]) -> GuardOutcome | None:
    """Return the outcome of a text that was translated in parts; None if there are no findings in any part."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    found = tuple(finding for part in some for finding in part.found)
    left = tuple(finding for part in some for finding in part.left)
    return GuardOutcome(found, left, ", ".join(dict.fromkeys(part.search for part in some if part.search)))


@dataclass(frozen=True)
class Guard:
    """Inspects translations. scripts: the scripts of the target language, empty if unknown. two_languages: True if the
    source and target languages differ, so that a copy is a fault. max_beam: the maximum beam size of further searches,
    unless the first search has a larger one; None for no limit. lengths: the lengths of the model's training pairs;
    None if they are unknown, so that lengths are not judged.
    """

    scripts: frozenset[str] = frozenset()
    two_languages: bool = True
    max_beam: int | None = None
    lengths: CorpusLengths | None = None

    def findings(self, source: str, output: str) -> tuple[Finding, ...]:
        """Return the faults of a translation; an empty tuple if the source is blank."""
        if not source.strip():
            return ()
        found: list[tuple[Kind, str | None]] = [
            ("empty", output if is_empty(source, output) else None),
            *self._faulty_length(source, output),
            ("repetition", repeated_phrase(source, output)),
            ("copy", output if self.two_languages and is_copied(source, output) else None),
            ("script", foreign_letters(source, output, self.scripts)),
            ("numbers", changed_numbers(source, output)),
        ]
        return tuple(Finding(kind, what) for kind, what in found if what is not None)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the guard as JSON values."""
        limit = {} if self.max_beam is None else {"max_beam": self.max_beam}
        lengths = {} if self.lengths is None else {"lengths": self.lengths.model_dump(mode="json")}
        return {"scripts": sorted(self.scripts), "two_languages": self.two_languages, **limit, **lengths}

    def _faulty_length(self, source: str, output: str) -> list[tuple[Kind, str | None]]:
        """Return the finding that an output is too short or too long; an empty one is a finding of its own kind."""
        verdict = None if self.lengths is None or is_empty(source, output) else self.lengths.judge(source, output)
        return [] if verdict is None else [(verdict, output)]


def is_empty(source: str, output: str) -> bool:
    """Return whether the output is blank, or lacks letters and digits although the source has some.

    Models assign a high probability to the empty output, and wide beams find it (Stahlberg and Byrne 2019).
    """
    if not source.strip() or any(map(str.isalnum, output)):
        return False
    return not output.strip() or any(map(str.isalnum, source))
