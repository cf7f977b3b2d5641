"""`VocabularyConfig`: the base class of the settings of all vocabularies, and word counts to learn from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Self

from dragoman.base.settings.config import Config
from dragoman.text.tokenizer import Tokenizer, check_unicode

_SIZES = (100_000, 6_000), (1_000_000, 16_000)
LARGEST_SIZE = 32_000


def default_size(pairs: int) -> int:
    """Default size of a subword vocabulary for corpora with fewer sentence pairs than the key."""
    return next((size for most, size in _SIZES if pairs < most), LARGEST_SIZE)


class VocabularyConfig(Config):
    """Base class of the settings of all vocabularies. tokenizer: the class of tokenizers of this kind."""

    tokenizer: ClassVar[type[Tokenizer]]

    @property
    def resampling(self) -> float:
        """Dropout rate at which training resamples the split of a sentence each time it is read; 0: never."""
        return 0.0

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the vocabulary depends on."""
        return ()

    def with_size(self, pairs: int) -> Self:
        """Set the vocabulary size for a corpus of `pairs` sentence pairs, if none is given."""
        return self

    def learn(self, texts: Iterable[str]) -> Tokenizer:
        """Learn a vocabulary from `texts`, which are read once. Raises DataError for invalid Unicode."""
        raise NotImplementedError


_AT_ONCE = 1000


def count_words(texts: Iterable[str], split: Callable[[str], Iterable[str]]) -> Counter[str]:
    """Count the words that `split` returns for `texts`. Raises DataError for invalid Unicode."""
    words: Counter[str] = Counter()
    for text in texts:
        check_unicode([text])
        words.update(split(text))
    words.pop("", None)
    return words


def occurrences(words: Counter[str], separator: str) -> Iterator[str]:
    """Yield texts that contain each word as often as it was counted; words that contain the separator are skipped."""
    for word, count in sorted(words.items()):
        for start in range(0, 0 if separator in word else count, _AT_ONCE):
            yield separator.join([word] * min(_AT_ONCE, count - start))
