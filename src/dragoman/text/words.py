"""Words of a text, divided at whitespace or by the class of their characters, in any script."""

from bisect import bisect_right
from collections.abc import Sequence

import regex

from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unspaced_scripts import SHARED_LETTERS, script_class


def word_indices(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """Return the index in `text.split()` of the word of each id of `tokenizer.encode(text)`; None for whitespace.

    A piece that spans several words is assigned to the first of them.
    """
    starts = [start for start, _ in word_spans(text)]
    return [None if end == start else bisect_right(starts, start) - 1 for start, end in tokenizer.spans(text)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each word of `text.split()`, in characters."""
    blank = [True, *map(str.isspace, text), True]
    edges = [index for index in range(len(text) + 1) if blank[index] != blank[index + 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


_UNSPACED_SCRIPTS = script_class(r"\p{{Script={}}}") + SHARED_LETTERS
"""In these scripts, a phrase may start and end at any character."""

WORD_CHARACTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_\u200C\u200D]--[{_UNSPACED_SCRIPTS}]]"
"""Character class for `regex.V1`: letters with their marks and joiners, and digits. A run of them is a word."""

_CHARACTER = regex.compile(WORD_CHARACTER, regex.V1)
_UNSPACED = regex.compile(rf"[{_UNSPACED_SCRIPTS}\u3000-\u303F\uFF01-\uFF60]", regex.V1)
_NO_TEXT = b"\xff"
"""A byte that UTF-8 does not contain, in place of a token without text."""
_UNITS = regex.compile(rf"{WORD_CHARACTER}+|\s+|.", regex.V1 | regex.DOTALL)


def is_word_character(character: str) -> bool:
    """Return whether a character forms a word together with adjacent letters."""
    return _CHARACTER.fullmatch(character) is not None


def is_unspaced(character: str) -> bool:
    """Return whether a character is of a script without spaces between words, or of its punctuation."""
    return _UNSPACED.fullmatch(character) is not None


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] starts and ends at word boundaries."""
    return not any(
        0 < position < len(text) and is_word_character(text[position - 1]) and is_word_character(text[position])
        for position in (start, end)
    )


def split_units(text: str) -> list[tuple[int, int]]:
    """Return the spans of words, runs of whitespace, and other characters.

    In scripts without spaces, each character is a separate unit.
    """
    return [match.span() for match in _UNITS.finditer(text)]


def number_words(surfaces: Sequence[bytes]) -> list[int]:
    """Return the number of the unit of `split_units` to which each token of a text belongs.

    surfaces: the UTF-8 bytes of each token in order, with the spaces between words. A token belongs to the unit of its
    first byte that is not a space, and a token of spaces to the unit that follows it. Tokens without bytes, such as
    special symbols, are units of their own.
    """
    parts = [surface or _NO_TEXT for surface in surfaces]
    text = b"".join(parts).decode("utf-8", "surrogateescape")  # an excerpt may start within a character
    units: list[int] = []
    for number, (start, end) in enumerate(split_units(text)):
        units += [number] * len(text[start:end].encode("utf-8", "surrogateescape"))
    numbers, start = [], 0
    for part in parts:
        first = start + len(part) - len(part.lstrip())
        numbers.append(units[min(first, len(units) - 1)])
        start += len(part)
    return numbers
