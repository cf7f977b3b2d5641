"""`Guard`: all detectors together, with what they know of two languages."""

from dataclasses import dataclass
from typing import Any

from dragoman.translation.guard.copied import copied
from dragoman.translation.guard.empty import empty
from dragoman.translation.guard.finding import Finding
from dragoman.translation.guard.numbers import changed_numbers
from dragoman.translation.guard.repetition import repetition
from dragoman.translation.guard.wrong_script import wrong_script


@dataclass(frozen=True)
class Guard:
    """scripts: the target language's, none where they are not known; two_languages: whether a copy is wrong."""

    scripts: frozenset[str] = frozenset()
    two_languages: bool = True

    def findings(self, source: str, output: str) -> tuple[Finding, ...]:
        """What is wrong with a translation of a source; of a blank source, nothing is."""
        if not source.strip():
            return ()
        found = [
            empty(source, output),
            repetition(source, output),
            copied(source, output) if self.two_languages else None,
            wrong_script(source, output, self.scripts),
            changed_numbers(source, output),
        ]
        return tuple(finding for finding in found if finding is not None)

    def settings(self) -> dict[str, Any]:
        """As values that JSON keeps."""
        return {"scripts": sorted(self.scripts), "two_languages": self.two_languages}
