"""`VocabularyConfig`, the base class of all vocabulary settings, and word counts for learning vocabularies."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Self

from dragoman.base.settings.config import Config
from dragoman.text.tokenizer import Tokenizer, check_unicode

_SIZES = (100_000, 6_000), (1_000_000, 16_000)
LARGEST_SIZE = 32_000


def default_size(pairs: int) -> int:
    """Return the default size of a subword vocabulary for a corpus of `pairs` sentence pairs."""
    return next((size for limit, size in _SIZES if pairs < limit), LARGEST_SIZE)


class VocabularyConfig(Config):
    """Base class of all vocabulary settings. tokenizer: the tokenizer class of this kind."""

    tokenizer: ClassVar[type[Tokenizer]]

    @property
    def resampling(self) -> float:
        """Dropout rate with which training splits a sentence differently each time it is read; 0: no resampling."""
        return 0.0

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the vocabulary depends on."""
        return ()

    def with_size(self, pairs: int) -> Self:
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> Tokenizer:
        """Learn a vocabulary from `texts`, which are iterated once. Raises DataError for invalid Unicode.

        divide_unspaced: whether to divide text without spaces into words, as described in `TextConfig`. It has no
        effect on the kinds `subword_nmt`, `bert` and `sentencepiece`, whose words are defined by other tools, and on
        `character`.
        """
        raise NotImplementedError


_WORDS_PER_TEXT = 1000


def count_words(texts: Iterable[str], split: Callable[[str], Iterable[str]]) -> Counter[str]:
    """Count the words that `split` returns for `texts`. Raises DataError for invalid Unicode."""
    words: Counter[str] = Counter()
    for text in texts:
        check_unicode([text])
        words.update(split(text))
    words.pop("", None)
    return words


def occurrences(words: Counter[str], separator: str) -> Iterator[str]:
    """Yield texts that repeat each word as often as it was counted. Words that contain the separator are skipped."""
    for word, count in sorted(words.items()):
        for start in range(0, 0 if separator in word else count, _WORDS_PER_TEXT):
            yield separator.join([word] * min(_WORDS_PER_TEXT, count - start))
