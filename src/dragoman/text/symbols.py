"""Vocabulary entries that are never produced by splitting text: special symbols, tags, and inline symbols.

In every vocabulary, the four special symbols have the ids 0 to 3, and tags and inline symbols have the last ids. Tags
and inline symbols are never split, and decoding removes them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_SYMBOLS = ("<pad>", "<s>", "</s>", "<unk>")


TO = "to:"
"""Prefix of target-language tags. Source: Johnson et al. 2017, section 3, who write <2de>."""


_INLINE = re.compile("⟨(?:[1-9][0-9]?|term|as|/term)⟩")


def is_inline(tag: str) -> bool:
    """Return whether a tag of a vocabulary is an inline symbol. Messages do not list inline symbols among the tags."""
    return _INLINE.fullmatch(tag) is not None


def symbol(tag: str) -> str:
    """Return the symbol of a tag in vocabularies and figures, such as `<bt>`. Inline symbols (`⟨1⟩`) are unchanged."""
    return tag if is_inline(tag) else f"<{tag}>"


def language_tag(language: str) -> str:
    """Return the tag of a target language, such as `to:de`."""
    return TO + language


def tag_languages(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the target languages among `tags`, in order."""
    return tuple(tag.removeprefix(TO) for tag in tags if tag.startswith(TO))


def source_tags(language: str | None, tags: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the tags of a source text: first the tag of its target language, then `tags` in the given order."""
    return (*(() if language is None else (language_tag(language),)), *tags)


def check_tag(tag: str) -> str:
    """Return the tag. Raises ValueError if it is not a valid tag."""
    name = tag.removeprefix(TO)
    if not name or any(character.isspace() or character in "<>," or not character.isprintable() for character in tag):
        raise ValueError(f"{tag!r} is not a valid tag: expected one word without <, > and commas, such as bt or to:de")
    if symbol(tag) in SPECIAL_SYMBOLS:
        raise ValueError(
            f"{tag!r} is not a valid tag: {symbol(tag)} is a special symbol of every vocabulary. Choose another name"
        )
    if is_inline(tag):
        raise ValueError(
            f"{tag!r} is not a valid tag: it is a symbol of data.placeholders or data.terminology. Choose another name"
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
    """Return a placeholder for a span that is the same in both languages: ⟨1⟩, ⟨2⟩ …"""
    return f"⟨{number}⟩"


def placeholder_symbols(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the placeholder symbols among the tags of a vocabulary."""
    return tuple(tag for tag in tags if is_inline(tag) and tag not in TERMINOLOGY)


class InlineText(NamedTuple):
    """A text with inline symbols.

    parts: the text between the symbols, including spaces. symbols: `symbols[i]` is between `parts[i]` and
    `parts[i + 1]`.
    """

    parts: tuple[str, ...]
    symbols: tuple[str, ...] = ()

    def text(self, replacements: Mapping[str, str]) -> str:
        """Return the text with its symbols replaced. Symbols without a replacement are removed."""
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

    def write_symbol(self, symbol: str) -> None:
        """Append a symbol."""
        self.symbols.append(symbol)
        self.parts.append("")

    def write_term(self, source: str, target: str) -> None:
        """Append a term with its translation.

        Source: the "append" method of Dinu et al. 2019, with symbols instead of factors. A preceding space is moved
        after the first symbol, so that source and target are split like ordinary words.
        """
        is_first = not self.symbols and not self.parts[0]
        follows_space = self.parts[-1].endswith(" ")
        self.parts[-1] = self.parts[-1].removesuffix(" ")
        self.write_symbol(TERM)
        self.write(f" {source}" if follows_space or is_first else source)
        self.write_symbol(AS)
        self.write(f" {target}")
        self.write_symbol(END)

    def build(self) -> InlineText:
        """Return the complete text."""
        return InlineText(tuple(self.parts), tuple(self.symbols))
