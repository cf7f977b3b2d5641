"""Vocabulary entries that never result from text: special symbols, tags, and inline symbols.

Every vocabulary has the four special symbols at ids 0 to 3. Tags and inline symbols have its last ids; they are never
divided, and decode to nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_SYMBOLS = ("<pad>", "<s>", "</s>", "<unk>")


TO = "to:"
"""Prefix of the tags of target languages. Source: Johnson et al. 2017, section 3, who write <2de>."""


_INLINE = re.compile("⟨(?:[1-9][0-9]?|term|as|/term)⟩")


def is_inline(tag: str) -> bool:
    """Whether a tag of a vocabulary is an inline symbol, which messages do not list among the tags."""
    return _INLINE.fullmatch(tag) is not None


def symbol(tag: str) -> str:
    """The symbol of a tag in vocabularies and figures, such as `<bt>`; inline symbols are unchanged, such as `⟨1⟩`."""
    return tag if is_inline(tag) else f"<{tag}>"


def language_tag(language: str) -> str:
    """The tag of a target language, such as `to:de`."""
    return TO + language


def tag_languages(tags: Iterable[str]) -> tuple[str, ...]:
    """The target languages among `tags`, in order."""
    return tuple(tag.removeprefix(TO) for tag in tags if tag.startswith(TO))


def source_tags(language: str | None, tags: Sequence[str] = ()) -> tuple[str, ...]:
    """The tags of a source text: the tag of its target language first, then the others in the given order."""
    return (*(() if language is None else (language_tag(language),)), *tags)


def check_tag(tag: str) -> str:
    """Return the tag. Raises ValueError if it is not a valid tag."""
    name = tag.removeprefix(TO)
    if not name or any(character.isspace() or character in "<>," or not character.isprintable() for character in tag):
        raise ValueError(f"{tag!r} is not a valid tag: a tag is one word without <, > and commas, such as bt, or to:de")
    if symbol(tag) in SPECIAL_SYMBOLS:
        raise ValueError(
            f"{tag!r} is not a valid tag: {symbol(tag)} is a special symbol of every vocabulary; choose another name"
        )
    if is_inline(tag):
        raise ValueError(
            f"{tag!r} is not a valid tag: it is a symbol of data.placeholders or data.terminology; choose another name"
        )
    return tag


def check_stored(tag: str) -> str:
    """Like `check_tag`, but also accept inline symbols, which vocabulary files contain."""
    return tag if is_inline(tag) else check_tag(tag)


Tag = Annotated[str, AfterValidator(check_tag)]
"""A tag in settings."""


TERM, AS, END = TERMINOLOGY = ("⟨term⟩", "⟨as⟩", "⟨/term⟩")
"""Symbols around a source term and its translation: ⟨term⟩ dog ⟨as⟩ Hund ⟨/term⟩."""

MAX_PLACEHOLDERS = 99


def placeholder_symbol(number: int) -> str:
    """A placeholder for a span that is the same in both languages: ⟨1⟩, ⟨2⟩ …"""
    return f"⟨{number}⟩"


def placeholder_symbols(tags: Iterable[str]) -> tuple[str, ...]:
    """The placeholders among the tags of a vocabulary."""
    return tuple(tag for tag in tags if is_inline(tag) and tag not in TERMINOLOGY)


class InlineText(NamedTuple):
    """A text with inline symbols: `symbols[i]` is between `parts[i]` and `parts[i + 1]`, which include their spaces."""

    parts: tuple[str, ...]
    symbols: tuple[str, ...] = ()

    def text(self, replacements: Mapping[str, str]) -> str:
        """The text with symbols replaced; symbols without a replacement are removed."""
        return self.parts[0] + "".join(
            replacements.get(symbol, "") + part for symbol, part in zip(self.symbols, self.parts[1:], strict=True)
        )


@dataclass
class InlineWriter:
    """Writes an `InlineText` from left to right."""

    parts: list[str] = field(default_factory=lambda: [""])
    symbols: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Append text."""
        self.parts[-1] += text

    def mark(self, symbol: str) -> None:
        """Append a symbol."""
        self.symbols.append(symbol)
        self.parts.append("")

    def term(self, source: str, target: str) -> None:
        """Append a term with its translation (Dinu et al. 2019, append; with symbols instead of factors).

        The preceding space is moved after the first symbol, so that source and target are split like ordinary words.
        """
        begins = not self.symbols and not self.parts[0]
        apart = self.parts[-1].endswith(" ")
        self.parts[-1] = self.parts[-1].removesuffix(" ")
        self.mark(TERM)
        self.write(f" {source}" if apart or begins else source)
        self.mark(AS)
        self.write(f" {target}")
        self.mark(END)

    def written(self) -> InlineText:
        """Return the complete text."""
        return InlineText(tuple(self.parts), tuple(self.symbols))
