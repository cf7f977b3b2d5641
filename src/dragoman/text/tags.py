"""Tags: vocabulary entries that stand before a source text and say where it comes from or what is wanted of it."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import AfterValidator

from dragoman.text.special import SPECIAL_SYMBOLS

TO = "to:"
"""What the tag of a target language begins with. Source: Johnson et al. 2017, section 3, who write <2de>."""


_INLINE = re.compile("⟨(?:[1-9][0-9]?|term|as|/term)⟩")


def is_inline(tag: str) -> bool:
    """Whether it is a symbol that stands among words (`text.inline`), of which nobody speaks as a tag."""
    return _INLINE.fullmatch(tag) is not None


def symbol(tag: str) -> str:
    """The tag as a vocabulary and pictures show it: `<bt>`; an inline symbol as it is: `⟨1⟩`."""
    return tag if is_inline(tag) else f"<{tag}>"


def language_tag(language: str) -> str:
    """The tag of a target language: `to:de`."""
    return TO + language


def languages(tags: Iterable[str]) -> tuple[str, ...]:
    """The target languages among `tags`, in their order."""
    return tuple(tag.removeprefix(TO) for tag in tags if tag.startswith(TO))


def in_order(language: str | None, tags: Sequence[str] = ()) -> tuple[str, ...]:
    """The tags that a source text gets: its target language's first, then the others in the order given."""
    return (*(() if language is None else (language_tag(language),)), *tags)


def check_tag(tag: str) -> str:
    """The tag itself. Raises ValueError for what can be none."""
    name = tag.removeprefix(TO)
    if not name or any(character.isspace() or character in "<>," or not character.isprintable() for character in tag):
        raise ValueError(f"{tag!r} cannot be a tag: a tag is one word without <, > and commas, such as bt, or to:de")
    if symbol(tag) in SPECIAL_SYMBOLS:
        raise ValueError(f"{tag!r} cannot be a tag: {symbol(tag)} is a symbol of every vocabulary; choose another name")
    if is_inline(tag):
        raise ValueError(
            f"{tag!r} cannot be a tag: it is a symbol of data.placeholders or data.terminology; choose another name"
        )
    return tag


def check_stored(tag: str) -> str:
    """As `check_tag`; a vocabulary's file may hold inline symbols too."""
    return tag if is_inline(tag) else check_tag(tag)


Tag = Annotated[str, AfterValidator(check_tag)]
"""A tag in settings."""
