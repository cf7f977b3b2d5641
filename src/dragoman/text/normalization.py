"""Unicode normalisation, and the positions of normalised text in the original text."""

import unicodedata
from bisect import bisect_left
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import regex

Normalization = Literal["nfc", "nfkc", "none"]
"""Normalisation forms of UAX #15, and `none`."""

ODD_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Spaces of typesetting, with and without line breaks, which mean the same as an ordinary space."""

_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE = f"{_DIRECTIONS}\u00ad\u034f\u180e\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\ufff9\ufffa\ufffb"
"""Characters that are not displayed and change no word: hyphenation, line breaks, directions, byte order marks. Joiners
(U+200C, U+200D) are not among them, because they distinguish words of Persian and of Indic languages."""

LETTER_FORMS = {
    code: unicodedata.normalize("NFKC", chr(code))
    for block in (range(0xFB00, 0xFB07), range(0xFF01, 0xFF5F), range(0x1D400, 0x1D800))
    for code in block
}
"""Forms of letters, digits and marks that mean the same as the usual ones: Latin ligatures, full width, and the bold,
italic and other letters for mathematics. The last are also typed as decoration."""

STRAY_JOINERS = regex.compile(
    r"(?<![\u0600-\u109f\u1780-\u18af\ufb50-\ufefc])[\u200c\u200d]++(?=[\x00-\u05ff\u1e00-\u200a\u3000-\ud7ff]|\Z)"
    r"|(?<=[\p{Latin}\p{Greek}\p{Cyrillic}])[\ufe00-\ufe0f]"
)
"""Joiners and selectors of variants beside letters that have no such forms."""


def normalise(text: str, form: Normalization) -> str:
    """Return the text in a normalisation form. The text may contain lone surrogates, which are kept."""
    return text if form == "none" or text.isascii() else unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]


class NormalisedText(NamedTuple):
    """A text in a normalisation form.

    origins: the (start, end) in the original text of the part from which each character originates; None if the text
    was already normalised, so that the positions are the same.
    """

    text: str
    origins: list[tuple[int, int]] | None = None

    @staticmethod
    def of(text: str, form: Normalization) -> "NormalisedText":
        """Normalise a text, part by part, where no character of a part affects those of another part."""
        normalised = normalise(text, form)
        if normalised == text:
            return NormalisedText(text)
        origins: list[tuple[int, int]] = []
        starts = [
            index
            for index, character in enumerate(text)
            if index == 0 or text[index - 1].isspace() or _starts_part(character, form)  # no space is composed
        ]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            origins += [(start, end)] * len(normalise(text[start:end], form))
        return NormalisedText(normalised, origins)

    def span_in_original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text from which text[start:end] originates."""
        if self.origins is None:
            return start, end
        if start < end:
            return self.origins[start][0], self.origins[end - 1][1]
        position = self.origins[start][0] if start < len(self.origins) else self.origins[-1][1] if self.origins else 0
        return position, position

    def position_of(self, original: int) -> int:
        """Return the position in the normalised text of a position in the original text.

        A position within a part corresponds to the end of the part.
        """
        if self.origins is None:
            return original
        return bisect_left([start for start, _ in self.origins], original)


@lru_cache(1 << 14)
def _starts_part(character: str, form: Normalization) -> bool:
    """Return whether a character, in any text, is normalised independently of all preceding characters.

    It is if its decomposition starts with a character of combining class 0 that no composition has as its second
    character (UAX #15, section 9.1: boundaries in both directions).
    """
    first = unicodedata.normalize("NFKD" if form == "nfkc" else "NFD", character)[0]
    return unicodedata.combining(first) == 0 and first not in _second_characters()


@cache
def _second_characters() -> frozenset[str]:
    """Return all characters that may be composed with a preceding character."""
    decompositions = (unicodedata.decomposition(chr(code)).split() for code in range(0x30000))
    pairs = (parts for parts in decompositions if len(parts) == 2 and not parts[0].startswith("<"))
    jamo = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))  # vowels and final consonants of Hangul, composed by rule
    return frozenset([*(chr(int(second, 16)) for _, second in pairs), *map(chr, jamo)])
