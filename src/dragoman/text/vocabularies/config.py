"""`VocabularyConfig`: the base of the settings of all vocabularies, and what they learn from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Self

from dragoman.base.settings.config import Config
from dragoman.text.tokenizer import Tokenizer, check_unicode

_SIZES = (100_000, 6_000), (1_000_000, 16_000)
LARGEST_SIZE = 32_000


def default_size(pairs: int) -> int:
    """The entries of a subword vocabulary for a corpus of so many sentence pairs."""
    return next((size for most, size in _SIZES if pairs < most), LARGEST_SIZE)


class VocabularyConfig(Config):
    """Base class of the settings of all vocabularies. tokenizer: the class that reads what this kind has learned."""

    tokenizer: ClassVar[type[Tokenizer]]

    @property
    def resampling(self) -> float:
        """The rate at which training splits a sentence anew each time it reads it; 0: it never does."""
        return 0.0

    @property
    def files(self) -> tuple[Path, ...]:
        """Files whose contents the vocabulary depends on."""
        return ()

    def with_size(self, pairs: int) -> Self:
        """The same settings with a size, chosen for a corpus of so many sentence pairs where none was given."""
        return self

    def learn(self, texts: Iterable[str]) -> Tokenizer:
        """Learn a vocabulary from `texts`, which are read to their end once. Raises DataError for broken Unicode."""
        raise NotImplementedError


_AT_ONCE = 1000


def count_words(texts: Iterable[str], split: Callable[[str], Iterable[str]]) -> Counter[str]:
    """The words that `split` finds in `texts`. Raises DataError for broken Unicode."""
    words: Counter[str] = Counter()
    for text in texts:
        check_unicode([text])
        words.update(split(text))
    words.pop("", None)
    return words


def occurrences(words: Counter[str], separator: str) -> Iterator[str]:
    """Texts in which each word stands as often as it was counted; words that hold the separator are left out."""
    for word, count in sorted(words.items()):
        for start in range(0, 0 if separator in word else count, _AT_ONCE):
            yield separator.join([word] * min(_AT_ONCE, count - start))
