"""The rules of `version: 1`, with which runs of dragoman 0.1 are resumed.

Scripts are the first words of Unicode's names, lengths are in bytes, and items with control characters are dropped.
"""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

_MERGED = {"CJK": "HAN", "IDEOGRAPHIC": "HAN", "HIRAGANA": "KANA", "KATAKANA": "KANA", "FULLWIDTH": "LATIN"}
_NO_SCRIPT = frozenset({"", "MODIFIER", "MICRO", "FEMININE", "MASCULINE", "MATHEMATICAL", "SCRIPT", "DOUBLE-STRUCK"})
_ASCII_LETTER, _LETTER = re.compile("[A-Za-z]"), re.compile(r"[^\W\d_]")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_CONTROL_BUT_NEWLINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ALLOWANCE = 10


@lru_cache(maxsize=1 << 16)
def _script(character: str) -> str | None:
    if not character.isalpha():
        return None
    word = unicodedata.name(character, "").partition(" ")[0]
    return None if word in _NO_SCRIPT else _MERGED.get(word, word)


def dominant_script(text: str) -> str | None:
    """Return the most frequent script of the letters of `text`; None if the text has no letters."""
    if text.isascii():
        return "LATIN" if _ASCII_LETTER.search(text) else None
    counts = Counter(map(_script, text))
    counts.pop(None, None)
    return max(counts, key=lambda name: (counts[name], name or "")) if counts else None


@lru_cache(maxsize=1)
def known_scripts() -> frozenset[str]:
    """Return the scripts of the letters of the Basic Multilingual Plane."""
    return frozenset(name for code in range(0x10000) if (name := _script(chr(code))) is not None)


def has_control_characters(text: str, newlines: bool) -> bool:
    """Return whether a text has control characters other than tabs. newlines: whether newlines are permitted, too."""
    return (_CONTROL_BUT_NEWLINES if newlines else _CONTROL).search(text) is not None


def byte_ratio(source: str, target: str) -> float:
    """Return the ratio of the lengths in bytes of the longer and the shorter side, after 10 bytes are added to each."""
    lengths = len(source.encode()) + _ALLOWANCE, len(target.encode()) + _ALLOWANCE
    return max(lengths) / min(lengths)


def has_lettered_words(text: str, count: int) -> bool:
    """Return whether at least `count` words between whitespace have letters."""
    return sum(_LETTER.search(word) is not None for word in text.split()) >= count
