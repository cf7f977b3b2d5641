"""Masking of tokens, which a masked language model learns to restore."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import number_words

MASK = "mask"
"""The tag of the vocabulary that replaces masked tokens, written `<mask>`. No text is encoded as this tag."""


class MaskingConfig(Config):
    """Which tokens are masked, and how (Devlin et al. 2019, section 3.1 and appendix C.2)."""

    rate: float = Field(0.15, gt=0, lt=1, description="Fraction of the tokens that the model has to predict.")
    replaced: float = Field(
        0.8, ge=0, le=1, description="Fraction of the predicted tokens that are replaced by <mask>."
    )
    random: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Fraction of the predicted tokens that are replaced by random tokens. The rest is unchanged.",
    )
    whole_words: bool = Field(
        False, description="Mask all tokens of a word, or none. A word is a run of letters and digits, or a symbol."
    )

    @model_validator(mode="after")
    def _check_fractions(self) -> "MaskingConfig":
        if self.replaced + self.random > 1:
            raise ValueError(
                f"masking.replaced and masking.random are fractions of the same tokens, but their sum is "
                f"{self.replaced + self.random:g}: lower one of them, so that the sum is at most 1"
            )
        return self


class Masked(NamedTuple):
    """A masked text. ids: (S,) the tokens that the model reads. predicted: (S,) bool, True at the tokens to predict."""

    ids: NDArray[np.int64]
    predicted: NDArray[np.bool_]


class Masker:
    """Masks texts. Special symbols and tags are never masked, and no token is replaced by one except <mask>."""

    def __init__(self, config: MaskingConfig, tokenizer: Tokenizer, seed: int) -> None:
        """tokenizer: a vocabulary with the tag `MASK`."""
        self._config, self._tokenizer, self._seed = config, tokenizer, seed
        self._mask = tokenizer.tag_ids([MASK])[0]
        self._first, self._end = len(SPECIAL_SYMBOLS), tokenizer.size - len(tokenizer.tags)

    def mask(self, ids: NDArray[np.int64], *key: int) -> Masked:
        """Mask the tokens of a text, (S,) without special symbols. The result depends only on the seed and the key.

        key: numbers that identify the draw, such as an epoch and a row.
        """
        draw = np.random.default_rng((self._seed, *key))
        chances, kinds = draw.random((2, len(ids)))
        others = draw.integers(self._first, self._end, len(ids))
        if self._config.whole_words:
            words = number_words([self._tokenizer.surface(number) for number in ids.tolist()])
            chances = chances[np.unique(words, return_inverse=True)[1]]
        predicted = (chances < self._config.rate) & (ids >= self._first) & (ids < self._end)
        masked = np.where(kinds < self._config.replaced, self._mask, ids)
        is_random = (kinds >= self._config.replaced) & (kinds < self._config.replaced + self._config.random)
        return Masked(np.where(predicted, np.where(is_random, others, masked), ids), predicted)
