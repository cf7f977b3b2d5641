"""Inline symbols: vocabulary entries that stand among the words of a text, and that no text can spell.

A vocabulary has them as it has tags, at its last ids, so they are never divided and never decoded to anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from dragoman.text.tags import is_inline
from dragoman.text.tokenizer import Tokenizer

TERM, AS, END = TERMINOLOGY = ("⟨term⟩", "⟨as⟩", "⟨/term⟩")
"""Around a term of the source and its translation: ⟨term⟩ dog ⟨as⟩ Hund ⟨/term⟩."""

MOST_SLOTS = 99


def slot(number: int) -> str:
    """The symbol that stands for a span which is the same in both languages: ⟨1⟩, ⟨2⟩ …"""
    return f"⟨{number}⟩"


def slots(tags: Iterable[str]) -> tuple[str, ...]:
    """Those of a vocabulary's tags that stand for spans."""
    return tuple(tag for tag in tags if is_inline(tag) and tag not in TERMINOLOGY)


class Inlined(NamedTuple):
    """A text with symbols in it: `symbols[i]` stands between `parts[i]` and `parts[i + 1]`, which keep their blanks."""

    parts: tuple[str, ...]
    symbols: tuple[str, ...] = ()

    def text(self, meant: Mapping[str, str]) -> str:
        """The text with what each symbol stands for in its place; nothing for one that stands for nothing."""
        return self.parts[0] + "".join(
            meant.get(symbol, "") + part for symbol, part in zip(self.symbols, self.parts[1:], strict=True)
        )


@dataclass
class InlineWriter:
    """Writes an `Inlined` from left to right."""

    parts: list[str] = field(default_factory=lambda: [""])
    symbols: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Text goes on."""
        self.parts[-1] += text

    def mark(self, symbol: str) -> None:
        """A symbol follows."""
        self.symbols.append(symbol)
        self.parts.append("")

    def term(self, source: str, target: str) -> None:
        """A term with its translation (Dinu et al. 2019, append; with symbols in the place of factors).

        The blank before it stands behind the first symbol, so that both are split as the words they are.
        """
        begins = not self.symbols and not self.parts[0]
        apart = self.parts[-1].endswith(" ")
        self.parts[-1] = self.parts[-1].removesuffix(" ")
        self.mark(TERM)
        self.write(f" {source}" if apart or begins else source)
        self.mark(AS)
        self.write(f" {target}")
        self.mark(END)

    def written(self) -> Inlined:
        """All of it."""
        return Inlined(tuple(self.parts), tuple(self.symbols))


def encode(tokenizer: Tokenizer, texts: Sequence[Inlined]) -> list[list[int]]:
    """The ids of each text, those of its symbols among them. Raises ConfigError for a symbol it does not have."""
    ids = tokenizer.encode_batch([text.parts[0] for text in texts])
    if not any(text.symbols for text in texts):
        return ids
    others = iter(tokenizer.encode_further(list(chain.from_iterable(text.parts[1:] for text in texts))))
    return [
        [*first, *chain.from_iterable([number, *next(others)] for number in tokenizer.tag_ids(text.symbols))]
        for text, first in zip(texts, ids, strict=True)
    ]
