"""Tags: vocabulary entries that stand before a source text and say where it comes from or what is wanted of it."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import AfterValidator

from dragoman.text.special import SPECIAL_SYMBOLS

TO = "to:"
"""What the tag of a target language begins with. Source: Johnson et al. 2017, section 3, who write <2de>."""


def symbol(tag: str) -> str:
    """The tag as a vocabulary and pictures show it: `<bt>`."""
    return f"<{tag}>"


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
    return tag


Tag = Annotated[str, AfterValidator(check_tag)]
"""A tag in settings."""
