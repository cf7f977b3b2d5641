"""Constraints on outputs: token sequences that an output must contain as whole words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import is_word_character


class Alternative(NamedTuple):
    """One form of a phrase.

    ids: at least one token id. opens, closes: as in `Edges`, for the first and the last token; a token that opens must
    not follow a token that closes. label: any value for the caller, such as the text to display; not used by the
    search.
    """

    ids: tuple[int, ...]
    opens: bool = False
    closes: bool = False
    label: Any = None


Constraint = tuple[Alternative, ...]
"""A phrase that an output must contain in one of several forms. No two phrases share output tokens."""


class Edges(NamedTuple):
    """Types of the first and last characters of all V tokens of a vocabulary, each (V,) bool.

    opens: whether a token begins with a word character; closes: whether a token ends with a word character or with
    another character that no word follows directly, such as a full stop.
    """

    opens: NDArray[np.bool]
    closes: NDArray[np.bool]

    @staticmethod
    def none(size: int) -> "Edges":
        """Return the edges of a vocabulary of `size` tokens in which each token is a complete word."""
        return Edges(np.zeros(size, np.bool), np.zeros(size, np.bool))


class Constraints(NamedTuple):
    """The constraints of each of B sentences, an empty sequence if nothing is required, and the vocabulary's edges."""

    of: Sequence[Sequence[Constraint]]
    edges: Edges

    def __bool__(self) -> bool:
        """Return whether any sentence has constraints."""
        return any(self.of)


def max_added_tokens(alternative: Alternative) -> int:
    """Return the maximum number of tokens that a form adds to an output, including a separator that may precede it."""
    return len(alternative.ids) + alternative.opens


def tokens_needed(constraints: Sequence[Constraint]) -> int:
    """Return a number of tokens that is sufficient for all constraints."""
    return sum(min(map(max_added_tokens, constraint)) for constraint in constraints)


def size(constraint: Constraint) -> int:
    """Return the number of tokens of the shortest form."""
    return min(len(alternative.ids) for alternative in constraint)


_MAX_EXTRA_SLOTS = 32
"""Maximum number of additional slots. With more phrase tokens, the least advanced banks may have no slot."""


def constrained_beam_size(beam: int, constraints: Sequence[Constraint]) -> int:
    """Return the beam size of a sentence, with one additional slot per phrase token so that each bank has a slot."""
    return beam + min(sum(map(size, constraints)), _MAX_EXTRA_SLOTS)


_CLOSING = tuple(sign.encode() for sign in ".,;:!?)]}%…-")
"""Punctuation that is followed by a space before a word."""


def word_edges(tokenizer: Tokenizer) -> Edges:
    """Return the edges of a vocabulary. A part of a character counts as any character that it may belong to."""
    surfaces = [tokenizer.surface(number) for number in range(tokenizer.size)]
    opens = [_is_word(surface, 0) for surface in surfaces]
    closes = [_is_word(surface, -1) or surface.endswith(_CLOSING) for surface in surfaces]
    closes[UNK] = True  # it may stand for any word
    return Edges(np.array(opens, np.bool), np.array(closes, np.bool))


def _is_word(surface: bytes, position: int) -> bool:
    """Return whether the first or last character of a token's text (position 0 or −1) is a word character."""
    if not surface:
        return False
    character = surface.decode("utf-8", "surrogateescape")[position]
    # for part of a character, test if it can belong to a two-byte letter, as in Latin, Greek and Cyrillic
    return is_word_character(character) if character < "\udc80" or character > "\udcff" else character < "\udce0"
