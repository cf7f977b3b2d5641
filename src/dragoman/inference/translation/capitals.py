"""`Capitals`: texts in capital letters and in title case are translated in usual letters."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from dragoman.inference.control.keep import KeepRules
from dragoman.text.languages.codes import is_same_language
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer

_WORD = re.compile(r"[^\W\d_]+")
_DOTTED = ("tr", "az")
"""Languages in which the small letter of I is ı, and the capital letter of i is İ."""
_GREEK_ACCENT = re.compile("(?<=[Α-Ω])\u0301|(?<=[Α-Ω]\u0308)\u0301")
"""The accent of a small letter in Greek, which capital letters do not have."""
_GREEK_VOWEL = re.compile("[αεηιουω]")
_CAPITALISING = ("de", "lb")
"""Languages that capitalise nouns, in which title case is neither usual nor certain."""

_LONG, _CAPITALISED = 4, 0.8
"""Number of letters of a word that title case capitalises, and the fraction of these words that must be capitalised."""
_FEWEST, _FEWEST_UNUSUAL = 3, 2
"""Smallest numbers of capitalised words in title case, and of those whose usual spelling is small."""
_PER_NAME = 2
"""Smallest number of words whose usual spelling is small per word whose usual spelling is capitalised, like a name."""

_LETTERS_PER_PIECE = 4
"""Number of letters per piece of a word that the vocabulary knows. Unknown abbreviations have shorter pieces."""
_SHORT, _PER_SHORT = 3, 4
"""Number of letters of a small word in a text in capitals, such as a unit or *von*, and of capital words per such."""

_CODE = KeepRules.of(["all"])
"""Finds addresses, placeholders and the like, which have letters of their own."""


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
        """Return whether a text, or a part of it, is in capital letters or in title case."""
        return self.is_upper(text) or self.is_title(text) or bool(self._emphasis(text))

    def is_upper(self, text: str) -> bool:
        """Return whether a text is in capital letters: two words of several letters, or a known word, and no other.

        Addresses, placeholders and the like may have small letters, and so may a few short words, such as units.
        """
        if not any(map(_is_upper, _WORD.findall(text))):
            return False
        words = [match[0] for match in _words_outside_code(text)]
        upper, small = [each for each in words if _is_upper(each)], [each for each in words if each.islower()]
        if len(upper) == 1 == len(words):
            return len(upper[0]) >= _LONG and self._cost(self._usual_word(upper[0])) < self._cost(upper[0])
        is_capitalised = any(map(_is_capitalised, (each for each in words if len(each) > 1)))
        are_short = all(len(each) <= _SHORT for each in small) and len(small) * _PER_SHORT <= len(upper)
        return len(upper) > 1 and are_short and not is_capitalised

    def _emphasis(self, text: str) -> set[int]:
        """Return the positions of words in capitals in a text of usual letters: at least two known ones in a row."""
        if sum(map(_is_upper, _WORD.findall(text))) < 2:
            return set()
        found, row = set[int](), list[re.Match[str]]()
        for match in [*_words_outside_code(text), None]:
            if match is not None and (_is_upper(match[0]) or (row and match[0].isupper())):
                row.append(match)
                continue
            if sum(len(each[0]) > 1 for each in row) > 1 and all(self._is_known(each[0]) for each in row):
                found.update(each.start() for each in row)
            row = []
        return found

    def _is_known(self, word: str) -> bool:
        usual = self._usual_word(word)
        pieces = self._cost(usual)[1]
        is_long = pieces == 1 or pieces * _LETTERS_PER_PIECE <= len(word)
        return len(word) == 1 or (is_long and self._cost(usual) < self._cost(word))

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
        """Return a text in usual letters. The first word of a text in capital letters or in title case begins with one.

        Addresses, placeholders and the like stay as they are.
        """
        if not (is_upper := self.is_upper(text)) and not self.is_title(text):
            emphasis = self._emphasis(text)
            return _WORD.sub(lambda match: self._usual_word(match[0]) if match.start() in emphasis else match[0], text)
        is_first = True

        def spell(match: re.Match[str]) -> str:
            nonlocal is_first
            word = match[0]
            if word.isupper() or _is_upper(word) if is_upper else _is_capitalised(word):
                word = self._usual_word(word)
                if is_first and word.islower():
                    word = self._upper(word[:1], 0) + word[1:]
            is_first = False
            return word

        return _replace_outside_code(text, spell)

    def capitalise(self, translation: str, source: str) -> str:
        """Return a translation in capitals, except for addresses, placeholders and the small words of the source."""
        small = {match[0] for match in _words_outside_code(source) if not _is_upper(match[0])}

        def write(match: re.Match[str]) -> str:
            return match[0] if match[0] in small else self._upper(match[0], 1)

        return _replace_outside_code(translation, write)

    def _choose(self, word: str) -> str:
        if word == "I" and self._is_english:
            return word
        small = word.replace("İ", "i").replace("I", "ı").lower() if self._dotted[0] else word.lower()
        accented = (
            unicodedata.normalize("NFC", f"{small[: match.end()]}\u0301{small[match.end() :]}")
            for match in _GREEK_VOWEL.finditer(small)
        )
        spellings = [spelling for each in (small, *accented) for spelling in (each, word[:1] + each[1:])]
        return min([*spellings, word], key=self._cost)

    def _cost(self, word: str) -> tuple[bool, int]:
        ids: Sequence[int] = self._source.encode_phrase(word)
        return UNK in ids, len(ids)

    def _upper(self, text: str, side: int) -> str:
        upper = (text.replace("i", "İ") if self._dotted[side] else text).upper()
        plain = _GREEK_ACCENT.sub("", unicodedata.normalize("NFD", upper))
        return upper if upper.isascii() else unicodedata.normalize("NFC", plain)


def _is_capitalised(word: str) -> bool:
    return word[:1].isupper() and (word[1:].islower() or len(word) == 1)


def _is_upper(word: str) -> bool:
    """Return whether a word of several letters has no small one except ß, which is usual in capitals as well."""
    return len(word) > 1 and word.replace("ß", "").upper() == word.replace("ß", "") != word.lower()


def _replace_outside_code(text: str, replace: Callable[[re.Match[str]], str]) -> str:
    """Return a text with its words replaced, except for those in addresses, placeholders and the like."""
    words = {match.start() for match in _words_outside_code(text)}
    return _WORD.sub(lambda match: replace(match) if match.start() in words else match[0], text)


def _words_outside_code(text: str) -> list[re.Match[str]]:
    assert _CODE is not None
    spans = [] if text.replace(" ", "").isalpha() else _CODE.find(text)
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(text)]
    return [match for part in zip(ends, starts, strict=True) for match in _WORD.finditer(text, *part)]
