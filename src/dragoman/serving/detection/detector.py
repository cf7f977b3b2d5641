"""`Detector`: which of the languages that a server knows a text is written in."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import regex

from dragoman.base.packages import import_optional
from dragoman.serving.detection.languages import closest_code, has_script, language_of, script_of

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


_SHARPNESS = 0.6
"""Scores are divided by this · √bytes before they become probabilities; docs/language-detection.md says whence."""

_KNOWN_BEFORE = 0.95
"""How often a text is expected to be in one of the languages that are asked for, before it is looked at."""

_SEEN, _READ = 4_000, 2_000
"""Characters that are looked through for text, and that are read of it."""

_LEAST = 1.0
_NO_TEXT = regex.compile(r"<[/!\p{L}][^<>]*>|&#?\w{1,32};|\{[^{}]{0,100}\}|%\(\w{1,100}\)[sd]")
"""Markup and placeholders. Unlike those of `KeepRules`, these need no more time for text that was made to be slow."""


class Detection(NamedTuple):
    """language: its code, as it was asked for; confidence: in percent, how probable it is."""

    language: str
    confidence: float


class Detector:
    """Tells languages by the library py3langid: naive Bayes over byte n-grams, 139 languages (Lui and Baldwin 2012).

    What is asked is how probable each of `languages` is, and not only among themselves: all others that the library
    knows may be it too, with a twentieth of the probability beforehand. So a Spanish text is no English one with
    confidence, only because no Spanish is there. Safe for threads; the library's model, some 90 MB, is loaded once.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """languages: codes, such as `de`, `zh-Hans`, `pt-BR`, `nb`; of what cannot be told apart the first goes first.

        Raises ConfigError where the library is not installed.
        """
        labels = tuple(_model().labels)
        self._codes: dict[str, list[str]] = {}
        """Of each label of the library that is asked for."""
        undetected = []
        for language in dict.fromkeys(languages):
            label = closest_code(language_of(language), labels)
            if label is None:
                undetected.append(language)
            else:
                self._codes.setdefault(label, []).append(language)
        self.undetected = tuple(undetected)
        """Those that the library does not know: they are never found."""
        self._letters = letters_of(code for codes in self._codes.values() for code in codes)
        others = max(1, len(labels) - len(self._codes))
        self._others = math.log((1 - _KNOWN_BEFORE) / others)
        self._asked = math.log(_KNOWN_BEFORE / max(1, len(self._codes)))

    def detect(self, text: str) -> list[Detection]:
        """The languages that are at least 1% probable, the likeliest first; none where it cannot be told.

        That is so for a text without letters of a script that one of them has, and for one that is in none of them by
        all that is known. Addresses, markup and placeholders are left out; of a long text the beginning is read.
        """
        words = _NO_TEXT.sub(" ", text[:_SEEN]).split()
        text = " ".join(word for word in words if not _is_address(word))[:_READ]
        if not self._codes or self._letters.search(text) is None:
            return []
        # with blanks at its ends, a word alone has n-grams that tell beginnings and ends of words
        padded = f" {text} "
        scores = dict(_model().rank(padded))
        if len(set(scores.values())) == 1:  # not one n-gram that the library knows
            return []
        sharpness = _SHARPNESS * math.sqrt(len(padded.encode("utf-8", "surrogatepass")))
        weights = {
            label: score / sharpness + (self._asked if label in self._codes else self._others)
            for label, score in scores.items()
        }
        most = max(weights.values())
        total = sum(math.exp(weight - most) for weight in weights.values())
        percent = {label: 100 * math.exp(weights[label] - most) / total for label in self._codes}
        found = [
            Detection(code, round(percent[label] * share, 1))
            for label, codes in self._codes.items()
            if percent[label] >= _LEAST
            for code, share in zip(codes, shares(text, codes), strict=True)
        ]
        return sorted(found, key=lambda each: -each.confidence)


def _is_address(word: str) -> bool:
    return "@" in word or "://" in word or word.startswith("www.")


@cache
def _model() -> Any:
    """py3langid's, of all its languages, with scores as they are."""
    module = import_optional("py3langid.langid", "serve", "py3langid")
    return module.LanguageIdentifier.from_model_file(module.MODEL_FILE)
