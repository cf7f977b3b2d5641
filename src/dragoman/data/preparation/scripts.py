"""Which script a text is written in."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

_MERGED = {"CJK": "HAN", "IDEOGRAPHIC": "HAN", "HIRAGANA": "KANA", "KATAKANA": "KANA", "FULLWIDTH": "LATIN"}
_NO_SCRIPT = frozenset({"", "MODIFIER", "MICRO", "FEMININE", "MASCULINE", "MATHEMATICAL", "SCRIPT", "DOUBLE-STRUCK"})
_ASCII_LETTER = re.compile("[A-Za-z]")


@lru_cache(maxsize=1 << 16)
def script(character: str) -> str | None:
    """The script of a letter, in capitals: LATIN, CYRILLIC, HAN, KANA, HANGUL, ARABIC …; None for anything else.

    Taken from the first word of the character's Unicode name; Hiragana and Katakana are one script here (KANA).
    """
    if not character.isalpha():
        return None
    word = unicodedata.name(character, "").partition(" ")[0]
    return None if word in _NO_SCRIPT else _MERGED.get(word, word)


def dominant_script(text: str) -> str | None:
    """The script of most letters of `text`; None when it has no letters."""
    if text.isascii():
        return "LATIN" if _ASCII_LETTER.search(text) else None
    counts = Counter(map(script, text))
    counts.pop(None, None)
    return max(counts, key=lambda name: (counts[name], name or "")) if counts else None


@lru_cache(maxsize=1)
def known_scripts() -> frozenset[str]:
    """Every script that `script` can give in the Basic Multilingual Plane."""
    return frozenset(name for code in range(0x10000) if (name := script(chr(code))) is not None)
