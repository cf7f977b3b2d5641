"""Words of a text: what stands between whitespace, and where a word begins and ends in any script."""

from bisect import bisect_right

import regex

from dragoman.text.tokenizer import Tokenizer


def word_places(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """For each id of `tokenizer.encode(text)` which of `text.split()` it belongs to; None for blanks.

    A piece that begins in one word and ends in another belongs to the first.
    """
    begins = [begin for begin, _ in word_spans(text)]
    return [None if end == begin else bisect_right(begins, begin) - 1 for begin, end in tokenizer.spans(text)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each of `text.split()` begins and ends, in characters."""
    blank = [True, *map(str.isspace, text), True]
    edges = [place for place in range(len(text) + 1) if blank[place] != blank[place + 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


_WITHOUT_BLANKS = "".join(
    rf"\p{{Script={script}}}" for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
)
"""Scripts that put no blanks between words: a phrase may begin and end anywhere in them."""

WORD_CHARACTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_\u200C\u200D]--[{_WITHOUT_BLANKS}]]"
"""For patterns with `regex.V1`: letters with their marks and joiners, digits; two of them side by side are one word."""

_CHARACTER = regex.compile(WORD_CHARACTER, regex.V1)
_UNITS = regex.compile(rf"{WORD_CHARACTER}+|\s+|.", regex.V1 | regex.DOTALL)


def is_word_character(character: str) -> bool:
    """Whether it would run together with a letter beside it."""
    return _CHARACTER.fullmatch(character) is not None


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether no word goes on beyond text[start:end]."""
    return not any(
        0 < place < len(text) and is_word_character(text[place - 1]) and is_word_character(text[place])
        for place in (start, end)
    )


def split_units(text: str) -> list[tuple[int, int]]:
    """Beginning and end of each word, run of blanks, and other character; in scripts without blanks, each character."""
    return [match.span() for match in _UNITS.finditer(text)]
