"""Words of a text: separated by whitespace, or by word characters in any script."""

from bisect import bisect_right

import regex

from dragoman.text.tokenizer import Tokenizer


def word_indices(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """Return for each id of `tokenizer.encode(text)` the index of its word in `text.split()`; None for whitespace.

    A piece that spans several words belongs to the first.
    """
    begins = [begin for begin, _ in word_spans(text)]
    return [None if end == begin else bisect_right(begins, begin) - 1 for begin, end in tokenizer.spans(text)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each word of `text.split()`, in characters."""
    blank = [True, *map(str.isspace, text), True]
    edges = [index for index in range(len(text) + 1) if blank[index] != blank[index + 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


_WITHOUT_BLANKS = "".join(
    rf"\p{{Script={script}}}" for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
)
"""Scripts without spaces between words, where a phrase may start and end anywhere."""

WORD_CHARACTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_\u200C\u200D]--[{_WITHOUT_BLANKS}]]"
"""Character class for `regex.V1`: letters with their marks and joiners, and digits. Adjacent ones form a word."""

_CHARACTER = regex.compile(WORD_CHARACTER, regex.V1)
_UNITS = regex.compile(rf"{WORD_CHARACTER}+|\s+|.", regex.V1 | regex.DOTALL)


def is_word_character(character: str) -> bool:
    """Whether a character forms a word with an adjacent letter."""
    return _CHARACTER.fullmatch(character) is not None


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] starts and ends at word boundaries."""
    return not any(
        0 < position < len(text) and is_word_character(text[position - 1]) and is_word_character(text[position])
        for position in (start, end)
    )


def split_units(text: str) -> list[tuple[int, int]]:
    """Return the spans of words, runs of whitespace, and other characters; in scripts without spaces, each character is
    a unit.
    """
    return [match.span() for match in _UNITS.finditer(text)]
