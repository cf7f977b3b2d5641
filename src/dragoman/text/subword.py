"""What every kind of vocabulary has: settings that learn a tokenizer from text."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Self

from dragoman.base.settings.config import Config
from dragoman.text.tokenizer import Tokenizer

_SIZES = (100_000, 6_000), (1_000_000, 16_000)
LARGEST_SIZE = 32_000


def usual_size(pairs: int) -> int:
    """The entries of a subword vocabulary for a corpus of so many sentence pairs."""
    return next((size for most, size in _SIZES if pairs < most), LARGEST_SIZE)


class SubwordModel(Config):
    """The base of every kind's settings. tokenizer: the class that reads what this kind has learned."""

    tokenizer: ClassVar[type[Tokenizer]]

    @property
    def resampling(self) -> float:
        """The rate at which training splits a sentence anew each time it reads it; 0: it never does."""
        return 0.0

    @property
    def files(self) -> tuple[Path, ...]:
        """Files whose contents the vocabulary depends on."""
        return ()

    def sized(self, pairs: int) -> Self:
        """The same settings with a size, chosen for a corpus of so many sentence pairs where none was given."""
        return self

    def learn(self, texts: Iterable[str]) -> Tokenizer:
        """Learn a vocabulary from `texts`, which are read to their end once. Raises DataError for broken Unicode."""
        raise NotImplementedError
