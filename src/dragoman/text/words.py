"""Words of a text in any script: at whitespace, by the class of their characters, or counted.

Where a script has no spaces between words, the functions differ: `split_units`, `split_words` and `count_words` treat
each character as a word, and `countable_words` a run of characters of the usual length of a word.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import regex

from dragoman.text.scripts import unspaced_class
from dragoman.text.tokenizer import Tokenizer

_UNSPACED_LETTERS = unspaced_class(r"\p{{Script={}}}")
"""In these scripts, a phrase may start and end at any character."""

WORD_CHARACTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_\u200C\u200D]--[{_UNSPACED_LETTERS}]]"
"""Character class for `regex.V1`: letters with their marks and joiners, and digits. A run of them is a word."""

_CHARACTER = regex.compile(WORD_CHARACTER, regex.V1)
_UNSPACED = regex.compile(rf"[{_UNSPACED_LETTERS}\u3000-\u303F\uFF01-\uFF60]", regex.V1)
_NO_TEXT = b"\xff"
"""A byte that UTF-8 does not contain, in place of a token without text."""
_UNITS = regex.compile(rf"{WORD_CHARACTER}+|\s+|.", regex.V1 | regex.DOTALL)

_UNSPACED_LETTER = regex.compile(rf"[{_UNSPACED_LETTERS}--\p{{M}}]", regex.V1)
_LETTER = regex.compile(r"\p{L}", regex.V1)
_UNSPACED_WORD = regex.compile(rf"(?:(?<!\p{{P}})\p{{P}}*+)?[{_UNSPACED_LETTERS}]\p{{M}}*\p{{P}}*", regex.V1)
_UNSPACED_CHARACTER = regex.compile(rf"[{_UNSPACED_LETTERS}]\p{{M}}*", regex.V1)
_SAMPLE = 1 << 16
"""Number of letters after which the fraction of letters of scripts without spaces is not computed any further."""

_LETTERS_PER_WORD = {
    "Han": 2,
    r"Hiragana}\p{Script=Katakana": 3,
    "Thai": 5,
    "Lao": 6,
    "Khmer": 6,
    "Myanmar": 8,
    "Tibetan": 7,
}
"""Number of characters of a script without spaces that correspond to an English word, including vowel marks. In the
Universal Declaration of Human Rights these are 1.5 for Han in Chinese, 3.5 for kana, 5.2, 5.7, 5.8, 8.2 and 6.9."""

_COUNTED_SCRIPTS = "".join(rf"\p{{Script={script}}}" for script in _LETTERS_PER_WORD)
_WORD_SEPARATORS = r"\s\u1361"
"""Whitespace, and the separator of Ethiopic words."""

_SPECIALLY_COUNTED = regex.compile(rf"[{_COUNTED_SCRIPTS}\u1361]")
_COUNTABLE = regex.compile(
    "|".join(rf"[\p{{Script={script}}}]{{1,{length}}}" for script, length in _LETTERS_PER_WORD.items())
    + rf"|[^{_WORD_SEPARATORS}{_COUNTED_SCRIPTS}]+"
)


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
    text = b"".join(parts).decode("utf-8", "surrogateescape")  # a block may start within a character
    units: list[int] = []
    for number, (start, end) in enumerate(split_units(text)):
        units += [number] * len(text[start:end].encode("utf-8", "surrogateescape"))
    numbers, start = [], 0
    for part in parts:
        first = start + len(part) - len(part.lstrip())
        numbers.append(units[min(first, len(units) - 1)])
        start += len(part)
    return numbers


def is_unspaced_text(lines: Iterable[str]) -> bool:
    """Return whether at least half of the letters belong to scripts without spaces between words."""
    unspaced = letters = 0
    for line in lines:
        if not line.isascii():
            unspaced += len(_UNSPACED_LETTER.findall(line))
        letters += len(_LETTER.findall(line))
        if letters > _SAMPLE:
            break
    return unspaced > 0 and 2 * unspaced >= letters


def count_words(text: str) -> int:
    """Return the number of words: blank-separated ones, and each character of scripts without spaces.

    Marks and punctuation belong to the character that they follow or precede.
    """
    if text.isascii():
        return len(text.split())
    rest, characters = _UNSPACED_WORD.subn(" ", text)
    return int(characters) + len(rest.split())


def split_words(text: str) -> list[str]:
    """Return the words of a text: blank-separated ones, and each character of scripts without spaces."""
    return text.split() if text.isascii() else _UNSPACED_CHARACTER.sub(r" \g<0> ", text).split()


def countable_words(text: str) -> list[str]:
    """Return the words of a text, for counting. The boundaries are only real where whitespace separates words.

    Text of scripts without spaces is divided into pieces of the usual length of a word.
    """
    if text.isascii() or _SPECIALLY_COUNTED.search(text) is None:
        return text.split()
    words: list[str] = _COUNTABLE.findall(text)
    return words


class Difference(NamedTuple):
    """The words `start` to `end` of a text, in place of which another text has the words `other_start` to `other_end`.

    The ends are exclusive, and one of the two ranges may be empty.
    """

    start: int
    end: int
    other_start: int
    other_end: int


def word_differences(words: Sequence[str], others: Sequence[str]) -> tuple[Difference, ...]:
    """Return the differences between the words of two texts in order. The words between them are the same.

    Long runs of common words are matched first, as in Python's `difflib`, so that the differences are readable, but not
    always as few as possible.
    """
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    return tuple(Difference(*ranges) for kind, *ranges in matcher.get_opcodes() if kind != "equal")
