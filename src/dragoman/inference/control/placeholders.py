"""`Placeholders`: replaces spans that occur on both sides of a training pair with symbols."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence

import numpy as np
import regex
from pydantic import Field, ValidationInfo, field_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.inference.control.keep import KINDS, KeepRules, Span, bare_number
from dragoman.text.symbols import MAX_PLACEHOLDERS, InlineText, placeholder_symbol
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
    share: float = Field(default=0.5, gt=0, le=1, description="Share of pairs in which spans are replaced.")
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
