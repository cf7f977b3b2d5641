"""`word_edges`: which tokens of a vocabulary start or end a word, for constraints that must be whole words."""

import numpy as np

from dragoman.decode.constraints.constraint import Edges
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import is_word_character

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
