"""What a translation shows for words that its vocabulary lacks: the settings, and dictionaries."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.corpora.lines import has_broken_utf8, open_lines

Translate = Callable[[str], str]
"""From a source word, without blanks, to what a translation shows in the place of an unknown that attended it."""


class ForbidUnknownConfig(Config):
    """The search never generates UNK."""

    kind: Literal["forbid"] = "forbid"

    def reader(self) -> Translate | None:
        """None: there is nothing to show."""
        return None


class CopyUnknownConfig(Config):
    """Each UNK is replaced by the source word with the highest attention weight (Luong et al. 2015; Jean et al.
    2015, section 3.3).
    """

    kind: Literal["copy"] = "copy"

    def reader(self) -> Translate | None:
        """The word itself."""
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

    def reader(self) -> Translate | None:
        """Looks words up, in their own case. Raises DataError for a file that is no dictionary."""
        words = read_dictionary(self.path)
        return lambda word: words.get(word, word)


UnknownConfig = Annotated[
    ForbidUnknownConfig | CopyUnknownConfig | DictionaryUnknownConfig, Field(discriminator="kind")
]


def read_dictionary(path: Path) -> dict[str, str]:
    """Read lines of word TAB translation; blank lines are skipped. Raises DataError naming the file and the line."""
    words: dict[str, str] = {}
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            continue
        word, *translations = (column.strip() for column in line.split("\t"))
        if has_broken_utf8(line):
            raise DataError(f"{path}, line {number}: broken UTF-8; convert the file (for example with iconv).")
        if len(translations) != 1 or not word or not translations[0]:
            raise DataError(f"{path}, line {number}: not a word, a tab and its translation: {line[:60]!r}.")
        words.setdefault(word, translations[0])
    if not words:
        raise DataError(f"{path} is empty; a dictionary has lines of word TAB translation.")
    return words
