"""`PairMarking`: placeholders and marked terms in training pairs."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.preparation.tokenising import MarkedPair
from dragoman.inference.control.glossary import Glossary, Match
from dragoman.inference.control.placeholders import Placeholders, PlaceholdersConfig, PlaceholderSpans
from dragoman.text.symbols import TERMINOLOGY, InlineText, InlineWriter


class TerminologyConfig(Config):
    """Trains the model to use given translations of terms, in the input format `⟨term⟩ dog ⟨as⟩ Hund ⟨/term⟩` (Dinu et
    al. 2019, append).

    After training, `--glossary` inserts these symbols into the model's input.
    """

    glossary: Path = Field(description="Training glossary, in the file format of --glossary.")
    share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of pairs in which terms are marked if the target contains their translation.",
    )

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that the vocabularies must contain."""
        return TERMINOLOGY

    def build(self) -> "Terminology":
        """Read the glossary. Raises DataError if it is invalid."""
        try:
            return Terminology(self, Glossary.read(self.glossary))
        except DataError as error:
            raise DataError(f"data.terminology.glossary: {error}") from error


Range = tuple[int, int]
"""Start and end of a substring."""


class MarkedTerm(NamedTuple):
    """A term at source[start:end], and the form of its translation in the target."""

    start: int
    end: int
    target: str


class Terminology:
    """Finds terms in the source whose translations occur in the target."""

    def __init__(self, config: TerminologyConfig, glossary: Glossary) -> None:
        self.config, self.glossary = config, glossary

    def find_terms(
        self, source: str, target: str, source_spans: Sequence[Range], target_spans: Sequence[Range]
    ) -> list[MarkedTerm]:
        """Return the terms from left to right. Two terms never share words of the target.

        source_spans, target_spans: parts of both sides that are replaced with placeholders; terms do not overlap them.
        """
        ends, starts = [0, *(end for _, end in source_spans)], [*(start for start, _ in source_spans), len(source)]
        matches = self.glossary.find(source, zip(ends, starts, strict=True))
        used = list(target_spans)
        forms = (self._find_form(match, target, used) for match in matches)
        return [
            MarkedTerm(match.start, match.end, form)
            for match, form in zip(matches, forms, strict=True)
            if form is not None
        ]

    def _find_form(self, match: Match, target: str, used: list[Range]) -> str | None:
        """Return the first form that occurs in the target outside of `used`. Add its range to `used`."""
        for start, end in match.phrase.find(target):
            if all(end <= one[0] or one[1] <= start for one in used):
                used.append((start, end))
                return target[start:end]
        return None


_SEED = 0x504C4143
"""Random seed, combined with the line number, so that the data do not depend on training settings."""


class PairMarking:
    """Inserts placeholders and term marks into pairs; implements `data.preparation.tokenising.PairMarker`."""

    def __init__(self, placeholders: Placeholders | None, terminology: Terminology | None) -> None:
        self._placeholders, self._terminology = placeholders, terminology

    @staticmethod
    def of(placeholders: PlaceholdersConfig | None, terminology: TerminologyConfig | None) -> "PairMarking | None":
        """Create the marking, or return None if neither is configured. Raises DataError for an unreadable glossary."""
        if placeholders is None and terminology is None:
            return None
        return PairMarking(
            None if placeholders is None else placeholders.build(),
            None if terminology is None else terminology.build(),
        )

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that the vocabularies must contain."""
        parts = (self._placeholders, self._terminology)
        return tuple(tag for part in parts if part is not None for tag in part.config.tags)

    @property
    def fingerprint(self) -> str:
        """A digest of the settings and of the glossary's terms."""
        parts = ["3"]  # to be raised when the patterns of `keep.KINDS` change
        if self._placeholders is not None:
            parts.append(self._placeholders.config.model_dump_json())
        if self._terminology is not None:
            parts.append(f"{self._terminology.glossary.fingerprint} {self._terminology.config.share}")
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def __call__(self, source: str, target: str, line: int) -> MarkedPair:
        """Mark spans, then terms outside of these spans. The random decisions for spans and terms are independent.

        line: the line number, part of the random seed.
        """
        spans: tuple[PlaceholderSpans, PlaceholderSpans] = PlaceholderSpans(), PlaceholderSpans()
        terms: list[MarkedTerm] = []
        random = np.random.default_rng((_SEED, 0, line))
        placeholders, terminology = self._placeholders, self._terminology
        if placeholders is not None and random.random() >= placeholders.config.share:
            placeholders = None
        if terminology is not None and np.random.default_rng((_SEED, 1, line)).random() >= terminology.config.share:
            terminology = None
        if placeholders is not None:
            spans = placeholders.find_spans(source, target, random)
        if terminology is not None:
            source_spans, target_spans = ([(start, end) for start, end, _ in side] for side in spans)
            terms = terminology.find_terms(source, target, source_spans, target_spans)
        sides = insert_symbols(source, spans[0], terms), insert_symbols(target, spans[1], [])
        if placeholders is not None:
            sides = placeholders.add_symbol(*sides, random)
        return MarkedPair(*sides, len(sides[1].symbols), len(terms))


def insert_symbols(text: str, spans: PlaceholderSpans, terms: list[MarkedTerm]) -> InlineText:
    """Insert the symbols into one side of a pair. Spans and terms must not overlap."""
    line, position = InlineWriter(), 0
    for start, end, inserted, is_term in sorted(
        [*((*each, False) for each in spans), *((*each, True) for each in terms)]
    ):
        line.write(text[position:start])
        if is_term:
            line.write_term(text[start:end], inserted)
        else:
            line.write_symbol(inserted)
        position = end
    line.write(text[position:])
    return line.build()
