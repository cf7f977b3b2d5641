"""`PairMarking`: placeholders and marked terms in training pairs."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.control.glossary import Glossary, Match
from dragoman.control.placeholders import Placeholders, PlaceholdersConfig, Replaced
from dragoman.data.preparation.tokenising import MarkedPair
from dragoman.text.symbols import TERMINOLOGY, InlineText, InlineWriter


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
        """Read the glossary. Raises DataError if it is invalid."""
        try:
            return Terminology(self, Glossary.read(self.glossary))
        except DataError as error:
            raise DataError(f"data.terminology.glossary: {error}") from error


Place = tuple[int, int]
"""Start and end of a substring."""


class Marked(NamedTuple):
    """A term at source[start:end], and its form in the target."""

    start: int
    end: int
    target: str


class Terminology:
    """Finds terms whose translation occurs in the target."""

    def __init__(self, config: TerminologyConfig, glossary: Glossary) -> None:
        self.config, self.glossary = config, glossary

    def marked(self, source: str, target: str, edges: Sequence[Place], held: Sequence[Place]) -> list[Marked]:
        """Return the terms from left to right; no two share their words in the target.

        edges, held: places in the source and the target that are replaced otherwise.
        """
        ends, starts = [0, *(end for _, end in edges)], [*(start for start, _ in edges), len(source)]
        matches = [match for place in zip(ends, starts, strict=True) for match in self.glossary.find(source, *place)]
        taken = list(held)
        found = (self._found(match, target, taken) for match in matches)
        return [
            Marked(match.start, match.end, form) for match, form in zip(matches, found, strict=True) if form is not None
        ]

    def _found(self, match: Match, target: str, taken: list[Place]) -> str | None:
        """Return the form that occurs in the target, and reserve its place."""
        for start, end in match.phrase.places(target):
            if all(end <= one[0] or one[1] <= start for one in taken):
                taken.append((start, end))
                return target[start:end]
        return None


_KEY = 0x504C4143
"""Seeds the draws together with the line number: no training setting changes the data."""


class PairMarking:
    """Implements `data.preparation.tokenising.PairMarker`."""

    def __init__(self, placeholders: Placeholders | None, terminology: Terminology | None) -> None:
        self._placeholders, self._terminology = placeholders, terminology

    @staticmethod
    def of(placeholders: PlaceholdersConfig | None, terminology: TerminologyConfig | None) -> "PairMarking | None":
        """Return the marking, or None if neither is configured. Raises DataError for an unreadable glossary."""
        if placeholders is None and terminology is None:
            return None
        return PairMarking(
            None if placeholders is None else placeholders.build(),
            None if terminology is None else terminology.build(),
        )

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that vocabularies need."""
        parts = (self._placeholders, self._terminology)
        return tuple(tag for part in parts if part is not None for tag in part.config.tags)

    @property
    def fingerprint(self) -> str:
        """A digest of the settings and of the glossary's terms."""
        described = ["1"]
        if self._placeholders is not None:
            described.append(self._placeholders.config.model_dump_json())
        if self._terminology is not None:
            described.append(f"{self._terminology.glossary.fingerprint} {self._terminology.config.share}")
        return blake2b("\0".join(described).encode(), digest_size=16).hexdigest()

    def __call__(self, source: str, target: str, line: int) -> MarkedPair:
        """Mark a pair: spans first, then terms outside of them. The draws for the two are independent."""
        spans: tuple[Replaced, Replaced] = Replaced(), Replaced()
        terms: list[Marked] = []
        random = np.random.default_rng((_KEY, 0, line))
        placeholders, terminology = self._placeholders, self._terminology
        if placeholders is not None and random.random() >= placeholders.config.share:
            placeholders = None
        if terminology is not None and np.random.default_rng((_KEY, 1, line)).random() >= terminology.config.share:
            terminology = None
        if placeholders is not None:
            spans = placeholders.replaced(source, target, random)
        if terminology is not None:
            edges, held = ([(start, end) for start, end, _ in side] for side in spans)
            terms = terminology.marked(source, target, edges, held)
        sides = written(source, spans[0], terms), written(target, spans[1], [])
        if placeholders is not None:
            sides = placeholders.with_added(*sides, random)
        return MarkedPair(*sides, len(sides[1].symbols), len(terms))


def written(text: str, spans: Replaced, terms: list[Marked]) -> InlineText:
    """Return a side of a pair with its symbols; spans and terms do not overlap."""
    line, place = InlineWriter(), 0
    for start, end, what, is_term in sorted([*((*each, False) for each in spans), *((*each, True) for each in terms)]):
        line.write(text[place:start])
        if is_term:
            line.term(text[start:end], what)
        else:
            line.mark(what)
        place = end
    line.write(text[place:])
    return line.written()
