"""`Capitals`: texts in capital letters and in title case are translated in usual letters."""

import re
from collections.abc import Sequence
from functools import lru_cache

from dragoman.text.languages.codes import is_same_language
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer

_WORD = re.compile(r"[^\W\d_]+")
_DOTTED = ("tr", "az")
"""Languages in which the small letter of I is ı, and the capital letter of i is İ."""
_CAPITALISING = ("de", "lb")
"""Languages that capitalise nouns, in which title case is neither usual nor certain."""

_LONG, _CAPITALISED = 4, 0.8
"""Number of letters of a word that title case capitalises, and the fraction of these words that must be capitalised."""
_FEWEST, _FEWEST_UNUSUAL = 3, 2
"""Smallest numbers of capitalised words in title case, and of those whose usual spelling is small."""
_PER_NAME = 2
"""Smallest number of words whose usual spelling is small per word whose usual spelling is capitalised, like a name."""


class Capitals:
    """Recognises and restores texts in capital letters or in title case (*A Dog Runs In The Park*), such as headings.

    A model has hardly seen such words, so it spells them, and translates nonsense. The usual spelling of a word is the
    one for which the vocabulary has the longest pieces: *Hund* rather than *hund*, and *NATO* rather than *nato*.
    """

    def __init__(self, source: Tokenizer, languages: tuple[str | None, str | None]) -> None:
        """source: the tokenizer of the source. languages: of the source and of the target, if known."""
        self._source = source
        self._dotted = [any(each and is_same_language(each, dotted) for dotted in _DOTTED) for each in languages]
        language = languages[0]
        self._has_titles = language is None or not any(is_same_language(language, each) for each in _CAPITALISING)
        self._is_english = language is not None and is_same_language(language, "en")
        self._usual_word = lru_cache(1 << 14)(self._choose)

    def includes(self, text: str) -> bool:
        """Return whether a text is in capital letters or in title case."""
        return self.is_upper(text) or self.is_title(text)

    def is_upper(self, text: str) -> bool:
        """Return whether a text is in capital letters: it has two words of several letters and no small letter."""
        return text.upper() == text != text.lower() and sum(len(word) > 1 for word in _WORD.findall(text)) > 1

    def is_title(self, text: str) -> bool:
        """Return whether a text is in title case: its words are capitalised, though the usual spelling is small.

        The words after the first are counted. A word is no evidence if the vocabulary has both spellings.
        """
        if not self._has_titles:
            return False
        words = _WORD.findall(text)[1:]
        long, capitalised = [each for each in words if len(each) >= _LONG], list(filter(_is_capitalised, words))
        if len(capitalised) < _FEWEST or sum(map(_is_capitalised, long)) < _CAPITALISED * len(long):
            return False
        costs = [(self._cost(each.lower()), self._cost(each)) for each in capitalised]
        unusual, names = (
            sum(small < written for small, written in costs),
            sum(small > written for small, written in costs),
        )
        return unusual >= max(_FEWEST_UNUSUAL, _PER_NAME * names)

    def usual(self, text: str) -> str:
        """Return a text in capital letters or in title case in usual ones. Its first word begins with a capital."""
        is_first, is_title = True, not self.is_upper(text)

        def spell(match: re.Match[str]) -> str:
            nonlocal is_first
            word = self._usual_word(match[0]) if not is_title or _is_capitalised(match[0]) else match[0]
            if is_first and word.islower():
                word = self._upper(word[:1], 0) + word[1:]
            is_first = False
            return word

        return _WORD.sub(spell, text)

    def capitalise(self, translation: str) -> str:
        """Return a translation in capital letters."""
        return self._upper(translation, 1)

    def _choose(self, word: str) -> str:
        if word == "I" and self._is_english:
            return word
        small = word.replace("İ", "i").replace("I", "ı").lower() if self._dotted[0] else word.lower()
        spellings = (small, word[:1] + small[1:], word)
        return min(spellings, key=self._cost)

    def _cost(self, word: str) -> tuple[bool, int]:
        ids: Sequence[int] = self._source.encode_phrase(word)
        return UNK in ids, len(ids)

    def _upper(self, text: str, side: int) -> str:
        return (text.replace("i", "İ") if self._dotted[side] else text).upper()


def _is_capitalised(word: str) -> bool:
    return word[:1].isupper() and (word[1:].islower() or len(word) == 1)
