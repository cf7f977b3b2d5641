"""Constraints on outputs: token sequences that they must contain, and word edges, which must not run together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Alternative(NamedTuple):
    """One form of a phrase.

    ids: at least one token id. opens, closes: as in `Edges`, for the first and the last token; a token that opens must
    not follow a token that closes. label: for the caller, such as the text to display; the search ignores it.
    """

    ids: tuple[int, ...]
    opens: bool = False
    closes: bool = False
    label: Any = None


Constraint = tuple[Alternative, ...]
"""A phrase that an output must contain in one of several forms; no two phrases share tokens of the output."""


class Edges(NamedTuple):
    """The edges of a vocabulary's V tokens, each (V,) bool.

    opens: whether a token begins with a character of a word; closes: whether it ends with one, or with another
    character that no word follows directly, such as a full stop.
    """

    opens: NDArray[np.bool]
    closes: NDArray[np.bool]

    @staticmethod
    def none(size: int) -> "Edges":
        """The edges of a vocabulary whose tokens never run together."""
        return Edges(np.zeros(size, np.bool), np.zeros(size, np.bool))


class Constraints(NamedTuple):
    """The constraints of each of B sentences, empty if nothing is required, and the vocabulary's edges."""

    of: Sequence[Sequence[Constraint]]
    edges: Edges

    def __bool__(self) -> bool:
        """Whether any sentence has constraints."""
        return any(self.of)


def cost(alternative: Alternative) -> int:
    """Maximum number of tokens that a form adds to an output, including a separator that may have to precede it."""
    return len(alternative.ids) + alternative.opens


def least(constraints: Sequence[Constraint]) -> int:
    """A number of tokens that suffices for all constraints."""
    return sum(min(map(cost, constraint)) for constraint in constraints)


def size(constraint: Constraint) -> int:
    """Number of tokens of the shortest form."""
    return min(len(alternative.ids) for alternative in constraint)


_MOST_EXTRA = 32
"""Maximum number of additional slots: with longer phrases, the least advanced banks may get none."""


def constrained_beam_size(beam: int, constraints: Sequence[Constraint]) -> int:
    """Beam size of a sentence: one additional slot per token of its phrases, so that each bank has a slot."""
    return beam + min(sum(map(size, constraints)), _MOST_EXTRA)
