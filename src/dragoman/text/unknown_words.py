"""Settings for words that are not in the vocabulary: how translations show them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.settings.config import Config

Translate = Callable[[str], str]
"""Maps a source word, without spaces, to the text that replaces an UNK that attended to it."""

ReadDictionary = Callable[[Path], Mapping[str, str]]


class ForbidUnknownConfig(Config):
    """The search never generates UNK."""

    kind: Literal["forbid"] = "forbid"

    def translate(self, read: ReadDictionary) -> Translate | None:
        """Return None, because there is nothing to replace."""
        return None


class CopyUnknownConfig(Config):
    """Each UNK is replaced by the source word with the highest attention weight (Luong et al. 2015; Jean et al.
    2015, section 3.3).
    """

    kind: Literal["copy"] = "copy"

    def translate(self, read: ReadDictionary) -> Translate | None:
        """Return a function that copies the word."""
        return str


class DictionaryUnknownConfig(Config):
    """Each UNK is replaced by the dictionary translation of the source word with the highest attention weight, or by
    a copy of that word if it has none.
    """

    kind: Literal["dictionary"] = "dictionary"
    path: Path = Field(
        description="Dictionary: lines of word TAB translation, also .gz, .xz or .zst. Of repeated words, the first "
        "counts."
    )

    def translate(self, read: ReadDictionary) -> Translate | None:
        """Return a case-sensitive dictionary lookup. Raises the errors of `read`."""
        words = read(self.path)
        return lambda word: words.get(word, word)


UnknownConfig = Annotated[
    ForbidUnknownConfig | CopyUnknownConfig | DictionaryUnknownConfig, Field(discriminator="kind")
]
