"""Which letters languages are written with, and which of two variants of a language a text is in by its letters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import regex

from dragoman.serving.detection.languages import has_script, language_of, script_of

_LETTERS = {
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
    "Jpan": ("Hira", "Kana", "Hani"),
    "Kore": ("Hang", "Hani"),
}
"""The scripts of letters in texts that are said to be written in one (ISO 15924); of others, that one."""

_SEVERAL = frozenset("az bs crh ha kab kk ks ku ky mn ms pa sd sdh sr tg tk tt ug uz uzs".split())
"""Languages that are written in Latin, Cyrillic or Arabic letters too, beside what is usual."""

_ANY = r"\p{L}"
_CHINESE = {"Hans": "gb2312", "Hant": "big5"}
"""Character sets that hold the usual characters of one way to write Chinese, and few of the other's own."""


def letters_of(codes: Iterable[str]) -> "regex.Pattern[str]":
    """Finds a letter that one of these languages is written with; any letter where one of them is not known."""
    names = set[str]()
    for code in codes:
        name = script_of(code)
        names.update(_LETTERS.get(name, (name,)))
        if language_of(code) in _SEVERAL and not has_script(code):
            names.update(("Latn", "Cyrl", "Arab"))
    return regex.compile(_ANY if "" in names or not names else f"[{''.join(map(_property, sorted(names)))}]")


def shares(text: str, codes: Sequence[str]) -> list[float]:
    """How probable each variant of a language is, together 1: by the letters that only it has; else the same."""
    names = [script_of(code) for code in codes]
    if len(set(names)) == 1:
        return [1 / len(codes)] * len(codes)
    counts = dict.fromkeys(names, 0.5)
    for letter, times in Counter(filter(str.isalpha, text)).items():
        fitting = [name for name in counts if _writes(name, letter)]
        if len(fitting) == 1:
            counts[fitting[0]] += times
    total = sum(counts[name] for name in names)
    return [counts[name] / total for name in names]


@lru_cache(maxsize=1 << 14)
def _writes(name: str, letter: str) -> bool:
    if name in _CHINESE:
        try:
            return bool(letter.encode(_CHINESE[name]))
        except UnicodeEncodeError:
            return False
    return bool(name) and regex.match(_property(name), letter) is not None


def _property(name: str) -> str:
    return rf"\p{{Script={name}}}"
