"""What an output must hold: sequences of tokens, and where words would run together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import is_word_character

_CLOSING = tuple(sign.encode() for sign in ".,;:!?)]}%…-")
"""Signs after which there is a blank before a word."""


class Shown(NamedTuple):
    """What a translation shows for tokens that may say something else. The search does not look at it.

    before, after: the blank that belongs to the tokens. joined_before, joined_after: whether all blanks that stand
    there go.
    """

    text: str
    before: str = ""
    after: str = ""
    joined_before: bool = False
    joined_after: bool = False


class Alternative(NamedTuple):
    """One way to write a phrase.

    ids: at least one. opens, closes: as of `Edges`; where the one of two neighbours closes, the other must not open.
    """

    ids: tuple[int, ...]
    opens: bool = False
    closes: bool = False
    shown: Shown = Shown("")


Constraint = tuple[Alternative, ...]
"""A phrase that an output holds in one of several ways, at a place that it shares with no other phrase."""


class Edges(NamedTuple):
    """Of a vocabulary of V tokens, each (V,) bool.

    opens: whether a token's text begins with a character of a word; closes: whether it ends with one, or with another
    after which no word begins at once, such as a full stop.
    """

    opens: NDArray[np.bool]
    closes: NDArray[np.bool]

    @staticmethod
    def of(tokenizer: Tokenizer) -> "Edges":
        """Of a vocabulary; where a token holds a part of a character only, it is taken for what it may be."""
        surfaces = [tokenizer.surface(number) for number in range(tokenizer.size)]
        opens = [_is_word(surface, 0) for surface in surfaces]
        closes = [_is_word(surface, -1) or surface.endswith(_CLOSING) for surface in surfaces]
        closes[UNK] = True  # nobody knows what it stands for
        return Edges(np.array(opens, np.bool), np.array(closes, np.bool))

    @staticmethod
    def none(size: int) -> "Edges":
        """Of a vocabulary of which every token stands for itself."""
        return Edges(np.zeros(size, np.bool), np.zeros(size, np.bool))


class Constraints(NamedTuple):
    """Those of each of B sentences, an empty sequence where nothing is required, and the vocabulary's edges."""

    of: Sequence[Sequence[Constraint]]
    edges: Edges

    def __bool__(self) -> bool:
        """Whether anything is required of any sentence."""
        return any(self.of)


def cost(alternative: Alternative) -> int:
    """Tokens that writing it may take: one more where something may have to stand between it and a word before it."""
    return len(alternative.ids) + alternative.opens


def least(constraints: Sequence[Constraint]) -> int:
    """Tokens in which all can certainly be written."""
    return sum(min(map(cost, constraint)) for constraint in constraints)


def size(constraint: Constraint) -> int:
    """Tokens of the shortest way."""
    return min(len(alternative.ids) for alternative in constraint)


def _is_word(surface: bytes, place: int) -> bool:
    """Whether the first or the last character of a token's text is one of a word's."""
    if not surface:
        return False
    character = surface.decode("utf-8", "surrogateescape")[place]
    # of a part of a character, whether it can be a letter beyond ASCII: two bytes, as in Latin, Greek and Cyrillic
    return is_word_character(character) if character < "\udc80" or character > "\udcff" else character < "\udce0"


_MOST_MORE = 32
"""Places at most beside those that were asked for: with longer phrases, banks that are behind may get none."""


def constrained_beam_size(beam: int, constraints: Sequence[Constraint]) -> int:
    """Hypotheses kept of a sentence: one more for each token of the phrases, so that each bank has a place."""
    return beam + min(sum(map(size, constraints)), _MOST_MORE)
