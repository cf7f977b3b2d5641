"""`TerminologyConfig`: terms of training pairs that a glossary knows, with their translations beside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.control.glossary import Glossary, Match
from dragoman.text.symbols import TERMINOLOGY


class TerminologyConfig(Config):
    """The model learns to read `⟨term⟩ dog ⟨as⟩ Hund ⟨/term⟩` and to use the given translation (Dinu et al. 2019,
    append).

    `--glossary` then writes these marks into what the model reads.
    """

    glossary: Path = Field(description="Glossary to learn from: lines of source TAB target, as in --glossary.")
    share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of the pairs in which terms are marked, if the target contains their translation.",
    )

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols."""
        return TERMINOLOGY

    def build(self) -> "Terminology":
        """Reads the glossary. Raises DataError where that is none."""
        try:
            return Terminology(self, Glossary.read(self.glossary))
        except DataError as error:
            raise DataError(f"data.terminology.glossary: {error}") from error


Place = tuple[int, int]
"""Where something begins and ends."""


class Marked(NamedTuple):
    """A term at source[start:end], and how the target says it."""

    start: int
    end: int
    target: str


class Terminology:
    """Finds terms whose translation stands in the target."""

    def __init__(self, config: TerminologyConfig, glossary: Glossary) -> None:
        self.config, self.glossary = config, glossary

    def marked(self, source: str, target: str, edges: Sequence[Place], held: Sequence[Place]) -> list[Marked]:
        """The terms, from left to right; no two share what they are in the target.

        edges: of the source, what else is done with; held: the same of the target.
        """
        ends, starts = [0, *(end for _, end in edges)], [*(start for start, _ in edges), len(source)]
        matches = [match for place in zip(ends, starts, strict=True) for match in self.glossary.find(source, *place)]
        taken = list(held)
        found = (self._found(match, target, taken) for match in matches)
        return [
            Marked(match.start, match.end, form) for match, form in zip(matches, found, strict=True) if form is not None
        ]

    def _found(self, match: Match, target: str, taken: list[Place]) -> str | None:
        """The form that stands in the target, whose place is taken from now on."""
        for start, end in match.phrase.places(target):
            if all(end <= one[0] or one[1] <= start for one in taken):
                taken.append((start, end))
                return target[start:end]
        return None
