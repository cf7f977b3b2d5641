"""Settings for the treatment of words that are not in the vocabulary."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.text.normalization import normalise

Translate = Callable[[str], str]
"""Maps a source word, without spaces, to the replacement for an UNK whose attention is highest at this word."""

ReadDictionary = Callable[[Path], Mapping[str, str]]


class ForbidUnknownConfig(Config):
    """The search never generates UNK."""

    kind: Literal["forbid"] = "forbid"

    def translate(self, read: ReadDictionary) -> Translate | None:
        """Return None, because translations never contain UNK."""
        return None


class CopyUnknownConfig(Config):
    """Each UNK is replaced by the source word with the highest attention weight (Luong et al. 2015; Jean et al.
    2015, section 3.3).
    """

    kind: Literal["copy"] = "copy"

    def translate(self, read: ReadDictionary) -> Translate | None:
        """Return a function that copies the source word."""
        return str


class DictionaryUnknownConfig(Config):
    """Each UNK is replaced by the dictionary translation of the source word with the highest attention weight, or by
    a copy of that word if the dictionary does not contain it.
    """

    kind: Literal["dictionary"] = "dictionary"
    path: Path = Field(
        description="Dictionary file with one entry per line: word TAB translation; plain, .gz, .bz2, .xz or .zst. "
        "If a word is repeated, its first entry is used."
    )

    def translate(self, read: ReadDictionary) -> Translate | None:
        """Return a case-sensitive dictionary lookup, which ignores the Unicode normalisation of words.

        Raises the errors of `read`.
        """
        words = read(self.path)
        return lambda word: words.get(normalise(word, "nfc"), word)


UnknownConfig = Annotated[
    ForbidUnknownConfig | CopyUnknownConfig | DictionaryUnknownConfig, Field(discriminator="kind")
]
