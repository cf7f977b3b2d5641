"""`WordsConfig`: which words of a text are the same word for an aligner. `WordVocabulary`: words ↔ numbers."""

from collections.abc import Iterable, Sequence

import regex
from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.text.normalization import Normalization, normalise

UNKNOWN = -1
"""The number of every word that is not in the vocabulary."""

_PUNCTUATION = regex.compile(r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$")


class WordsConfig(Config):
    """The words that an aligner distinguishes. A word of a text extends to the next whitespace."""

    lowercase: bool = Field(True, description="Ignore upper and lower case.")
    normalization: Normalization = Field("nfkc", description="Unicode normalisation of words: nfc, nfkc or none.")
    strip_punctuation: bool = Field(
        True,
        description="Ignore punctuation at the start and end of words that also contain other characters, because "
        "texts that are not tokenised contain words such as 'house.' and '(the'.",
    )

    def canonical(self, word: str) -> str:
        """Return the form of a word that is the same for all words that the settings do not distinguish."""
        word = normalise(word, self.normalization)
        if self.lowercase:
            word = word.lower()
        if self.strip_punctuation:
            word = _PUNCTUATION.sub("", word) or word
        return word


class WordVocabulary:
    """Numbers the canonical words of one language, in the order of their first occurrence."""

    def __init__(self, config: WordsConfig, words: Iterable[str] = ()) -> None:
        """words: distinct canonical words."""
        self.config = config
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words)}
        self._surfaces: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.words)

    def extend(self, text: str) -> list[int]:
        """Return the numbers of the words of a text. New words are added."""
        return [self._add(word) for word in text.split()]

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the words of a text; UNKNOWN for new words."""
        return [self._find(word) for word in text.split()]

    def number(self, canonical: str) -> int:
        """Return the number of a canonical word, or UNKNOWN."""
        return self._numbers.get(canonical, UNKNOWN)

    def _add(self, surface: str) -> int:
        number = self._surfaces.get(surface)
        if number is None:
            canonical = self.config.canonical(surface)
            number = self._numbers.setdefault(canonical, len(self.words))
            if number == len(self.words):
                self.words.append(canonical)
            self._surfaces[surface] = number
        return number

    def _find(self, surface: str) -> int:
        number = self._surfaces.get(surface)
        return self.number(self.config.canonical(surface)) if number is None else number


def encode_words(words: Sequence[str]) -> bytes:
    """Return the words as bytes, for a file. Words contain no whitespace; lone surrogates are kept."""
    return "\n".join(words).encode("utf-8", "surrogatepass")


def decode_words(content: bytes) -> list[str]:
    """Return the words that `encode_words` has encoded."""
    return content.decode("utf-8", "surrogatepass").split("\n") if content else []
