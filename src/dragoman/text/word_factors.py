"""The factors of words: properties such as endings and shape, hashed to numbers, which taggers read beside tokens."""

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

NO_FACTOR = 0
"""The number in place of the factors of special symbols."""

LOWER, SHORT_SHAPE = 1, 11
"""Indices of the factors that are read with those of neighbouring words."""

_LENGTHS = (1, 2, 3, 4)
"""Numbers of characters of the beginnings and endings that are factors."""

_GOLDEN, _BITS, _KEPT = 0x9E3779B1, 32, 24


def word_factors(word: str) -> tuple[str, ...]:
    """Return the factors of a word, always equally many and in the same order.

    The word, the word in lower case, its beginnings and endings of 1 to 4 characters in lower case, its shape, and its
    shape with repeated characters only once: the usual features of a linear-chain CRF (Sha & Pereira 2003; Lample et
    al. 2016, section 4.1), which represent unknown words.

    >>> word_factors("Rome97")
    ('Rome97', 'rome97', 'r', 'ro', 'rom', 'rome', '7', '97', 'e97', 'me97', 'Xxxxdd', 'Xxd')
    """
    lower = word.lower()
    ends = [lower[:length] for length in _LENGTHS] + [lower[-length:] for length in _LENGTHS]
    shape = "".join(map(_class, word))
    short = "".join(kind for place, kind in enumerate(shape) if not place or shape[place - 1] != kind)
    return (word, lower, *ends, shape, short)


def count_factors(columns: int) -> int:
    """Return the number of factors of a word with further columns, such as parts of speech."""
    return len(word_factors("")) + columns


@lru_cache(maxsize=1 << 18)
def factor_numbers(word: str, columns: Sequence[str]) -> tuple[int, ...]:
    """Return a number from 1 to 2²⁴ for each factor of a word, and for its values of further columns.

    columns: a tuple with one value per column. The number depends on the factor and its value. Different values
    rarely have the same number (feature hashing; Weinberger et al. 2009).
    """
    values = (*word_factors(word), *columns)
    return tuple(1 + _hash(f"{place}={value}") for place, value in enumerate(values))


def _class(character: str) -> str:
    """Return the class of a character: X, x and d for upper case, lower case and digits, otherwise the character."""
    if character.isupper():
        return "X"
    if character.islower():
        return "x"
    return "d" if character.isdigit() else character


def _hash(text: str) -> int:
    """Return a hash of 24 bits that is equal on all machines: the high bits of a product are mixed best."""
    return (crc32(text.encode("utf-8", "surrogatepass")) * _GOLDEN % (1 << _BITS)) >> (_BITS - _KEPT)
