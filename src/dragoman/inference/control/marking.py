"""`PairMarking`: placeholders and marked terms in training pairs, from which a model learns to meet requirements."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regex
from pydantic import Field, ValidationInfo, field_validator

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.config import Config
from dragoman.data.preparation.tokenising import MarkedPair
from dragoman.inference.control.glossary import Glossary, Match
from dragoman.inference.control.keep import KINDS, KeepRules, Span, bare_number
from dragoman.text.symbols import MAX_PLACEHOLDERS, TERMINOLOGY, InlineText, InlineWriter, placeholder_symbol
from dragoman.text.words import is_word_character, split_units

MIN_WORD_LENGTH = 3
"""Minimum number of characters of a replaced word. Shorter words that two languages share are rarely names, such as
`in` and `so` in English and German."""


class PlaceholdersConfig(Config):
    """Replaces spans that occur on both sides of a pair, such as numbers, addresses and names, with symbols, so that
    the model learns to copy them (Crego et al. 2016; Post et al. 2019).

    After training, `--keep` inserts these symbols into the model's input.
    """

    kinds: tuple[str, ...] = Field(
        default=("all",), description=f"Kinds of spans to replace, as in --keep: {', '.join(KINDS)}, or all."
    )
    patterns: tuple[str, ...] = Field(
        default=(), description="Regular expressions for further spans, as in --keep-pattern."
    )
    words: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability of also replacing a word, such as a name, that has at least 3 letters and occurs once "
        "on each side. Useful for corpora with few spans of the selected kinds.",
    )
    added: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability of adding a symbol that replaces no span at the start or the end of both sides. "
        "Useful for corpora with very few spans of the selected kinds.",
    )
    share: float = Field(default=0.5, gt=0, le=1, description="Fraction of the pairs in which spans are replaced.")
    symbols: int = Field(
        default=9,
        ge=1,
        le=MAX_PLACEHOLDERS,
        description="Number of symbols ⟨1⟩, ⟨2⟩ …, which is also the maximum number of spans per pair or per text.",
    )

    @field_validator("kinds", "patterns")
    @classmethod
    def _validate_keep(cls, values: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        try:
            KeepRules.of(values) if info.field_name == "kinds" else KeepRules.of(patterns=values)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return values

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that the vocabularies must contain."""
        return tuple(map(placeholder_symbol, range(1, self.symbols + 1)))

    def build(self) -> "Placeholders":
        """Create `Placeholders` with these settings."""
        return Placeholders(self)


class PlaceholderSpans(tuple[tuple[int, int, str], ...]):
    """The start, end and symbol of each replaced span of one side, from left to right."""


class Placeholders:
    """Finds spans that occur equally often on both sides, and assigns symbols to them."""

    def __init__(self, config: PlaceholdersConfig) -> None:
        self.config = config
        self._keep = KeepRules.of(config.kinds, config.patterns)

    def find_spans(
        self, source: str, target: str, random: np.random.Generator
    ) -> tuple[PlaceholderSpans, PlaceholderSpans]:
        """Return the spans to replace on both sides.

        The n-th of several equal spans corresponds to the n-th equal span on the other side. Symbols are drawn at
        random, in ascending order in the source, so that all symbols are learned equally well.
        """
        found = [[] if self._keep is None else self._keep.find(text) for text in (source, target)]
        shared = {span.text for span in found[0]} & {span.text for span in found[1]}
        found = [[each if each.text in shared else bare_number(each) for each in spans] for spans in found]
        if self.config.words:
            self._add_words(source, target, found, random)
        counts = [Counter(span.text for span in spans) for spans in found]
        sources, targets = ([span for span in spans if counts[0][span.text] == counts[1][span.text]] for spans in found)
        chosen = sources[: self.config.symbols]
        numbers = np.sort(random.choice(self.config.symbols, len(chosen), replace=False)) + 1
        symbols = defaultdict[str, deque[str]](deque)
        for span, number in zip(chosen, numbers.tolist(), strict=True):
            symbols[span.text].append(placeholder_symbol(number))
        source_spans = PlaceholderSpans(
            (span.start, span.end, placeholder_symbol(number)) for span, number in zip(chosen, numbers, strict=True)
        )
        target_spans = PlaceholderSpans(
            (span.start, span.end, symbols[span.text].popleft()) for span in targets if symbols.get(span.text)
        )
        return source_spans, target_spans

    def add_symbol(
        self, source: InlineText, target: InlineText, random: np.random.Generator
    ) -> tuple[InlineText, InlineText]:
        """Add an unused symbol, if there is one, at the same position on both sides with probability `added`."""
        unused = [symbol for symbol in self.config.tags if symbol not in source.symbols]
        if not unused or not random.random() < self.config.added:
            return source, target
        symbol, position = unused[int(random.integers(len(unused)))], int(random.integers(len(_POSITIONS)))
        return _add_symbol(source, symbol, *_POSITIONS[position]), _add_symbol(target, symbol, *_POSITIONS[position])

    def _add_words(self, source: str, target: str, found: Sequence[list[Span]], random: np.random.Generator) -> None:
        sides = [_unique_words(text, spans) for text, spans in zip((source, target), found, strict=True)]
        shared = [word for word in sides[0] if word in sides[1]]
        draws = random.random(len(shared))
        drawn = {word for word, draw in zip(shared, draws, strict=True) if draw < self.config.words}
        for spans, words in zip(found, sides, strict=True):
            spans += [span for word, span in words.items() if word in drawn]
            spans.sort()


_POSITIONS = ((True, "", " "), (True, "", ": "), (False, " ", ""), (False, " (", ")"), (False, ": ", ""))
"""Positions of an added symbol: whether it is at the start of the text, and the strings before and after the symbol."""

_FINAL = regex.compile(r"[\s\p{P}]*$")


def _add_symbol(line: InlineText, symbol: str, at_start: bool, before: str, after: str) -> InlineText:
    """Add a symbol at the start, or at the end before the final punctuation."""
    if at_start:
        return InlineText((before, after + line.parts[0], *line.parts[1:]), (symbol, *line.symbols))
    *parts, last = line.parts
    end = _FINAL.search(last).start()
    return InlineText((*parts, last[:end] + before, after + last[end:]), (*line.symbols, symbol))


def _unique_words(text: str, spans: Sequence[Span]) -> dict[str, Span]:
    """Return the words that occur once in a text and do not overlap the spans."""
    inside = np.zeros(len(text) + 1, bool)
    for span in spans:
        inside[span.start : span.end] = True
    words = [
        Span(start, end, text[start:end])
        for start, end in split_units(text)
        if end - start >= MIN_WORD_LENGTH and is_word_character(text[start])
    ]
    counts = Counter(word.text for word in words)
    return {
        word.text: word
        for word in words
        if counts[word.text] == 1 and word.text.isalpha() and not inside[word.start : word.end].any()
    }


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
        description="Fraction of the pairs in which terms are marked if the target contains their translation.",
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
