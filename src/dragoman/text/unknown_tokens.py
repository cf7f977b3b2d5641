"""Fractions of unknown tokens, which a vocabulary without the letters of a text produces instead of words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer

MAX_UNKNOWN = 0.4
"""Default of `data.max_unknown`. Word vocabularies of small corpora leave up to a third of ordinary text unknown, and
text in another alphabet is unknown except for its spaces, digits and punctuation marks."""

WARNING_FRACTION = 0.1
"""Fraction of unknown tokens above which a warning is printed."""

_FEWEST, _MOST_FRACTION = 3, 0.5
"""Number of unknown tokens, or fraction, that a warning about the texts of a user needs in addition."""


class UnknownTokens(NamedTuple):
    """Numbers of unknown tokens and of all tokens of a text."""

    unknown: int = 0
    tokens: int = 0

    @staticmethod
    def of(ids: Iterable[Sequence[int] | NDArray[np.integer]]) -> "UnknownTokens":
        """Count the tokens of texts."""
        total = UnknownTokens()
        for each in ids:
            unknown = each.count(UNK) if isinstance(each, list | tuple) else int(np.count_nonzero(np.equal(each, UNK)))
            total += UnknownTokens(unknown, len(each))
        return total

    def __add__(self, other: object) -> "UnknownTokens":
        if not isinstance(other, UnknownTokens):
            return NotImplemented
        return UnknownTokens(self.unknown + other.unknown, self.tokens + other.tokens)

    @property
    def fraction(self) -> float:
        """The fraction of unknown tokens, 0 for no tokens."""
        return self.unknown / self.tokens if self.tokens else 0.0


def has_unknown_tokens(tokenizer: Tokenizer) -> bool:
    """Return whether a text may have unknown tokens. Vocabularies with all bytes, and vectors, have none."""
    return not tokenizer.lossless and tokenizer.size > UNK and tokenizer.kind != "vectors"


def check_unknown(name: str, sides: Mapping[str, UnknownTokens], limit: float | None) -> None:
    """Raise DataError if the fraction of unknown tokens on a side exceeds the limit, and warn if it exceeds a tenth.

    name: name of the corpus. sides: the counts by the name of the side. limit: `data.max_unknown`.
    """
    for side, counts in sides.items():
        if limit is not None and counts.fraction > limit:
            raise DataError(
                f"{name}: {counts.fraction:.1%} of the {counts.tokens:,} {side} tokens are unknown to the vocabulary, "
                f"more than data.max_unknown={limit}. Check the language of this file. For text in other letters, "
                "train a new model, whose vocabulary is learned from the text, or use text.subword.kind=bpe or "
                "unigram, which have no unknown tokens"
            )
        if counts.fraction > WARNING_FRACTION:
            warn(f"{name}: {counts.fraction:.1%} of the {counts.tokens:,} {side} tokens are unknown to the vocabulary")


class UnknownTokenWarning:
    """Warns once if more than a tenth of all encoded tokens are unknown, but not because of a word in a short text."""

    def __init__(self, tokenizer: Tokenizer, enabled: bool = True) -> None:
        self._enabled, self._counts = enabled and has_unknown_tokens(tokenizer), UnknownTokens()

    def note(self, ids: Iterable[Sequence[int]]) -> None:
        """Count the tokens of texts."""
        if not self._enabled:
            return
        self._counts += UnknownTokens.of(ids)
        is_frequent = self._counts.unknown >= _FEWEST or self._counts.fraction > _MOST_FRACTION
        if self._counts.fraction > WARNING_FRACTION and is_frequent:
            self._enabled = False
            warn(
                f"{self._counts.fraction:.1%} of the {self._counts.tokens:,} tokens that were read are unknown to the "
                "model's vocabulary, so the model cannot process this text well. Check the language and the script of "
                "the text"
            )
