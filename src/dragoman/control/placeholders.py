"""`Placeholders`: replaces spans that occur on both sides of a training pair with symbols."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence

import numpy as np
import regex
from pydantic import Field, ValidationInfo, field_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.control.keep import KINDS, KeepRules, Span
from dragoman.text.symbols import MAX_PLACEHOLDERS, InlineText, placeholder_symbol
from dragoman.text.words import is_word_character, split_units

SHORTEST_WORD = 3
"""Minimum number of characters. Shorter words that two languages share are rarely names: `in` and `so` in English and
German."""


class PlaceholdersConfig(Config):
    """Replaces numbers, addresses, names and the like that occur on both sides of a pair with symbols, so that the
    model learns to copy them.

    `--keep` then inserts these symbols into the model's input (Crego et al. 2016; Post et al. 2019).
    """

    kinds: tuple[str, ...] = Field(
        default=("all",), description=f"Kinds of spans that are replaced, as in --keep: {', '.join(KINDS)}, or all."
    )
    patterns: tuple[str, ...] = Field(
        default=(), description="Regular expressions for further spans, as in --keep-pattern."
    )
    words: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability that a word of at least 3 letters that occurs once on each side, such as a name, is "
        "replaced too. For corpora with few spans of these kinds.",
    )
    added: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability that a symbol that replaces nothing is added at the start or the end of both sides. "
        "For corpora with hardly any such spans.",
    )
    share: float = Field(default=0.5, gt=0, le=1, description="Share of the pairs in which spans are replaced.")
    symbols: int = Field(
        default=9,
        ge=1,
        le=MAX_PLACEHOLDERS,
        description="Number of symbols ⟨1⟩, ⟨2⟩ …: the maximum number of spans per pair, or per text.",
    )

    @field_validator("kinds", "patterns")
    @classmethod
    def _can_be_kept(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        try:
            KeepRules.of(given) if info.field_name == "kinds" else KeepRules.of(patterns=given)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return given

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that vocabularies need."""
        return tuple(map(placeholder_symbol, range(1, self.symbols + 1)))

    def build(self) -> "Placeholders":
        """Return the `Placeholders` of these settings."""
        return Placeholders(self)


class PlaceholderSpans(tuple[tuple[int, int, str], ...]):
    """Start, end and symbol of each replaced span of one side, from left to right."""


class Placeholders:
    """Finds the spans that occur equally often on both sides."""

    def __init__(self, config: PlaceholdersConfig) -> None:
        self.config = config
        self._keep = KeepRules.of(config.kinds, config.patterns)

    def find_spans(
        self, source: str, target: str, random: np.random.Generator
    ) -> tuple[PlaceholderSpans, PlaceholderSpans]:
        """Return the spans to replace on both sides.

        The n-th of several equal spans corresponds to the n-th on the other side. Symbols are drawn at random, so that
        all are learned equally well; they ascend in the source.
        """
        found = [[] if self._keep is None else self._keep.find(text) for text in (source, target)]
        if self.config.words:
            self._add_words(source, target, found, random)
        counts = [Counter(span.text for span in spans) for spans in found]
        sources, targets = ([span for span in spans if counts[0][span.text] == counts[1][span.text]] for spans in found)
        chosen = sources[: self.config.symbols]
        numbers = np.sort(random.choice(self.config.symbols, len(chosen), replace=False)) + 1
        symbols = defaultdict[str, deque[str]](deque)
        for span, number in zip(chosen, numbers.tolist(), strict=True):
            symbols[span.text].append(placeholder_symbol(number))
        own = PlaceholderSpans(
            (span.start, span.end, placeholder_symbol(number)) for span, number in zip(chosen, numbers, strict=True)
        )
        others = PlaceholderSpans(
            (span.start, span.end, symbols[span.text].popleft()) for span in targets if symbols.get(span.text)
        )
        return own, others

    def add_symbol(
        self, source: InlineText, target: InlineText, random: np.random.Generator
    ) -> tuple[InlineText, InlineText]:
        """Add an unused symbol at the same position on both sides, with probability `added`, if any symbol is left."""
        free = [symbol for symbol in self.config.tags if symbol not in source.symbols]
        if not free or not random.random() < self.config.added:
            return source, target
        symbol, position = free[int(random.integers(len(free)))], int(random.integers(len(_POSITIONS)))
        return _with_symbol(source, symbol, *_POSITIONS[position]), _with_symbol(target, symbol, *_POSITIONS[position])

    def _add_words(self, source: str, target: str, found: Sequence[list[Span]], random: np.random.Generator) -> None:
        sides = [_words_beside(text, spans) for text, spans in zip((source, target), found, strict=True)]
        shared = [word for word in sides[0] if word in sides[1]]
        draws = random.random(len(shared))
        drawn = {word for word, draw in zip(shared, draws, strict=True) if draw < self.config.words}
        for spans, words in zip(found, sides, strict=True):
            spans += [span for word, span in words.items() if word in drawn]
            spans.sort()


_POSITIONS = ((True, "", " "), (True, "", ": "), (False, " ", ""), (False, " (", ")"), (False, ": ", ""))
"""Positions of an added symbol: whether it is at the start, and the texts before and after it."""

_FINAL = regex.compile(r"[\s\p{P}]*$")


def _with_symbol(line: InlineText, symbol: str, begins: bool, before: str, after: str) -> InlineText:
    """Add a symbol at the start, or at the end before the final punctuation."""
    if begins:
        return InlineText((before, after + line.parts[0], *line.parts[1:]), (symbol, *line.symbols))
    *parts, last = line.parts
    end = _FINAL.search(last).start()
    return InlineText((*parts, last[:end] + before, after + last[end:]), (*line.symbols, symbol))


def _words_beside(text: str, spans: Sequence[Span]) -> dict[str, Span]:
    """Return the words that occur once in a text, outside of its spans."""
    inside = np.zeros(len(text) + 1, bool)
    for span in spans:
        inside[span.start : span.end] = True
    words = [
        Span(start, end, text[start:end])
        for start, end in split_units(text)
        if end - start >= SHORTEST_WORD and is_word_character(text[start])
    ]
    counts = Counter(word.text for word in words)
    return {
        word.text: word
        for word in words
        if counts[word.text] == 1 and word.text.isalpha() and not inside[word.start : word.end].any()
    }
