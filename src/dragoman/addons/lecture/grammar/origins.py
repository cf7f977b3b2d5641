"""`Word`: a word of a realised sentence that knows which parts of the syntax tree it expresses."""

from collections.abc import Iterable, Sequence


class Word(str):
    """A word, or an expression of several words, with its origins.

    origins: the parts of the tree that the word expresses, as paths such as `subject.noun`. A contraction has several.
    """

    origins: tuple[str, ...]

    def __new__(cls, text: str, *origins: str) -> "Word":
        word = super().__new__(cls, text)
        word.origins = origins
        return word

    def __add__(self, other: str) -> "Word":
        return Word(str(self) + str(other), *dict.fromkeys((*self.origins, *origins_of(other))))

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override]
        return str(self), *self.origins


def origins_of(word: str) -> tuple[str, ...]:
    """Return the origins of a word; none for punctuation and other strings without origins."""
    return word.origins if isinstance(word, Word) else ()


def within(part: str, words: Iterable[str]) -> list[str]:
    """Return words with `part` in front of their origins, because they express a part of this part."""
    return [Word(word, *(f"{part}.{each}" for each in origins_of(word))) if word else word for word in words]


def single_words(words: Sequence[str]) -> list[str]:
    """Return the words of a sentence, in which expressions of several words are divided, without empty words."""
    return [Word(part, *origins_of(word)) for word in words for part in word.split(" ") if part]
