"""What an output must hold: sequences of tokens, and where words would run together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Alternative(NamedTuple):
    """One way to write a phrase.

    ids: at least one. opens, closes: whether its text begins, or ends, with a character of a word, which must not run
    together with a neighbour's. text: what a translation shows for the ids, with the blanks that belong to them, where
    that may be something else than the vocabulary can write; the search does not look at it.
    """

    ids: tuple[int, ...]
    opens: bool = False
    closes: bool = False
    text: str = ""


Constraint = tuple[Alternative, ...]
"""A phrase that an output holds in one of several ways, at a place that it shares with no other phrase."""


class Edges(NamedTuple):
    """opens, closes: (V,) bool, whether a token's text begins, or ends, with a character of a word."""

    opens: NDArray[np.bool]
    closes: NDArray[np.bool]

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
