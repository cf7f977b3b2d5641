"""`Noise`: the interface of noise, which corrupts a text that a model learns to restore."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.settings.config import Config
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer

Tokens = NDArray[np.int64]
"""Token ids of a text, (S,) without special symbols."""


class NoisyText(NamedTuple):
    """A corrupted text. source: the tokens that the model reads. target: the tokens that it learns to produce."""

    source: Tokens
    target: Tokens


class Noise(ABC):
    """Base class of noise. Special symbols, tags and the marks of an imported vocabulary are never masked or deleted.

    tokenizer: a vocabulary with the tags of the noise, some of which may be its marks; see `BaseNoiseConfig.tags` and
    `Tokenizer.marks`.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._first, self._end = len(SPECIAL_SYMBOLS), tokenizer.size - len(tokenizer.tags)
        self._marks = np.array(sorted(tokenizer.marks.values()), np.int64)

    @abstractmethod
    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Corrupt the source of a text, which may already be corrupted by other noise."""

    def is_text(self, ids: Tokens) -> NDArray[np.bool_]:
        """Return a mask that is False at special symbols, tags and marks, (S,)."""
        is_ordinary = (ids >= self._first) & (ids < self._end)
        return is_ordinary & ~np.isin(ids, self._marks) if len(self._marks) else is_ordinary


class BaseNoiseConfig(Config):
    """Base class of the configs of noise.

    restores: whether the target is the whole text. hides: whether some tokens of the text are not in the source.
    """

    restores: ClassVar[bool] = True
    hides: ClassVar[bool] = True
    kind: str

    def tags(self, length: int) -> tuple[str, ...]:
        """Return the tags that corrupted texts contain. length: maximum number of tokens of a text."""
        return ()

    @abstractmethod
    def build(self, tokenizer: Tokenizer) -> Noise:
        """Build the noise for a vocabulary that has its tags."""

    def describe(self) -> str:
        """Return the kind and the settings, for the model card."""
        settings = [f"{name.replace('_', ' ')} {value}" for name, value in self if name != "kind"]
        return self.kind.replace("_", " ") + (f" ({', '.join(settings)})" if settings else "")


class Corruption:
    """Corrupts texts with one kind of noise. The result depends only on the seed and the key."""

    def __init__(self, config: BaseNoiseConfig, tokenizer: Tokenizer, seed: int) -> None:
        self._noise, self._seed = config.build(tokenizer), seed

    def corrupt(self, ids: Tokens, *key: int) -> NoisyText:
        """Corrupt a text. key: numbers that identify the draw, such as an epoch and a row."""
        return self._noise.corrupt(NoisyText(ids, ids), np.random.default_rng((self._seed, *key)))


def round_randomly(value: float, draw: np.random.Generator) -> int:
    """Round to one of the two neighbouring integers, such that the expected result is the value."""
    return int(value + draw.random())
