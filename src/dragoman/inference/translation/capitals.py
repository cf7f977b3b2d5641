"""`Capitals`: texts in capital letters are translated in usual letters, and their translations are capitalised."""

import re
from collections.abc import Sequence
from functools import lru_cache

from dragoman.text.languages.codes import is_same_language
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer

_WORD = re.compile(r"[^\W\d_]+")
_DOTTED = ("tr", "az")
"""Languages in which the small letter of I is ı, and the capital letter of i is İ."""


class Capitals:
    """Recognises and restores texts in capital letters, such as headings.

    A model has hardly seen such words, so it spells them, and translates nonsense. The usual spelling of a word is the
    one for which the vocabulary has the longest pieces: *Hund* rather than *hund*, and *NATO* rather than *nato*.
    """

    def __init__(self, source: Tokenizer, languages: tuple[str | None, str | None]) -> None:
        """source: the tokenizer of the source. languages: of the source and of the target, if known."""
        self._source = source
        self._dotted = [any(each and is_same_language(each, dotted) for dotted in _DOTTED) for each in languages]
        self._usual_word = lru_cache(1 << 14)(self._choose)

    def includes(self, text: str) -> bool:
        """Return whether a text is in capital letters: it has two words of several letters and no small letter."""
        return text.upper() == text != text.lower() and sum(len(word) > 1 for word in _WORD.findall(text)) > 1

    def usual(self, text: str) -> str:
        """Return a text in capital letters in usual ones. Its first word begins with a capital letter."""
        is_first = True

        def spell(match: re.Match[str]) -> str:
            nonlocal is_first
            word = self._usual_word(match[0])
            if is_first and word.islower():
                word = self._upper(word[:1], 0) + word[1:]
            is_first = False
            return word

        return _WORD.sub(spell, text)

    def capitalise(self, translation: str) -> str:
        """Return a translation in capital letters."""
        return self._upper(translation, 1)

    def _choose(self, word: str) -> str:
        small = word.replace("İ", "i").replace("I", "ı").lower() if self._dotted[0] else word.lower()
        spellings = (small, word[:1] + small[1:], word)
        return min(spellings, key=self._cost)

    def _cost(self, word: str) -> tuple[bool, int]:
        ids: Sequence[int] = self._source.encode_phrase(word)
        return UNK in ids, len(ids)

    def _upper(self, text: str, side: int) -> str:
        return (text.replace("i", "İ") if self._dotted[side] else text).upper()
