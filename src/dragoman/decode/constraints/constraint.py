"""What an output must contain: sequences of tokens, and the edges of words, which must not run together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Alternative(NamedTuple):
    """One form of a phrase.

    ids: at least one. opens, closes: as in `Edges`; after a token that closes, the next must not open. label: for the
    caller, such as the text that is shown; the search does not read it.
    """

    ids: tuple[int, ...]
    opens: bool = False
    closes: bool = False
    label: Any = None


Constraint = tuple[Alternative, ...]
"""A phrase that an output contains in one of several forms, in tokens that it shares with no other phrase."""


class Edges(NamedTuple):
    """The edges of a vocabulary's V tokens, each (V,) bool.

    opens: whether a token begins with a character of a word; closes: whether it ends with one, or with another after
    which no word begins directly, such as a full stop.
    """

    opens: NDArray[np.bool]
    closes: NDArray[np.bool]

    @staticmethod
    def none(size: int) -> "Edges":
        """Those of a vocabulary whose tokens never run together."""
        return Edges(np.zeros(size, np.bool), np.zeros(size, np.bool))


class Constraints(NamedTuple):
    """The constraints of each of B sentences, empty if nothing is required, and the vocabulary's edges."""

    of: Sequence[Sequence[Constraint]]
    edges: Edges

    def __bool__(self) -> bool:
        """Whether anything is required of any sentence."""
        return any(self.of)


def cost(alternative: Alternative) -> int:
    """Tokens that writing it may take: one more if it may need a separator from a word before it."""
    return len(alternative.ids) + alternative.opens


def least(constraints: Sequence[Constraint]) -> int:
    """A number of tokens that certainly suffices for all."""
    return sum(min(map(cost, constraint)) for constraint in constraints)


def size(constraint: Constraint) -> int:
    """Tokens of the shortest form."""
    return min(len(alternative.ids) for alternative in constraint)


_MOST_EXTRA = 32
"""Most slots in addition to the requested ones: with longer phrases, banks with little progress may get none."""


def constrained_beam_size(beam: int, constraints: Sequence[Constraint]) -> int:
    """Hypotheses kept for a sentence: one more for each token of the phrases, so that each bank has a slot."""
    return beam + min(sum(map(size, constraints)), _MOST_EXTRA)
