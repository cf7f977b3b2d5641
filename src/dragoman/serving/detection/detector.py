"""`Detector`: detects which of a server's languages a text is written in."""

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
"""The scripts that some ISO 15924 codes combine; any other code is a single script."""

_SEVERAL_SCRIPTS = frozenset("az bs crh ha kab kk ks ku ky mn ms pa sd sdh sr tg tk tt ug uz uzs".split())
"""Languages that are also written in Latin, Cyrillic or Arabic letters, in addition to their usual script."""

_ANY = r"\p{L}"
_CHINESE = {"Hans": "gb2312", "Hant": "big5"}
"""Character sets with the usual characters of one Chinese script, and few of those that only the other script has."""

_SHARPNESS = 0.6
"""Scores are divided by this · √bytes before the softmax; docs/language-detection.md explains the value."""

_PRIOR = 0.95
"""The prior probability that a text is in one of the languages to detect."""

_SEARCHED, _CLASSIFIED = 4_000, 2_000
"""The maximum number of characters of a text that are searched for words, and of the words that are classified."""

_LEAST_PERCENT = 1.0
_NO_TEXT = regex.compile(r"<[/!\p{L}][^<>]*>|&#?\w{1,32};|\{[^{}]{0,100}\}|%\(\w{1,100}\)[sd]")
"""Markup and placeholders. Unlike the patterns of `KeepRules`, these take linear time on hostile input."""


class Detection(NamedTuple):
    """language: its code as given to `Detector`; confidence: its probability in percent."""

    language: str
    confidence: float


class Detector:
    """Detects languages with py3langid: naive Bayes over byte n-grams of 139 languages (Lui and Baldwin 2012).

    Probabilities are not normalised over `languages` alone: the other languages of the library share a twentieth of the
    prior. A Spanish text is therefore not classified as English with confidence just because Spanish is not among the
    languages. Safe for several threads; the library's model, about 90 MB, is loaded once.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """languages: codes such as `de`, `zh-Hans`, `pt-BR` or `nb`; the first of indistinguishable codes is preferred.

        Raises ConfigError if the library is not installed.
        """
        labels = tuple(_model().labels)
        self._codes: dict[str, list[str]] = {}
        """The codes of `languages` by the library's label."""
        undetected = []
        for language in dict.fromkeys(languages):
            label = closest_code(language_of(language), labels)
            if label is None:
                undetected.append(language)
            else:
                self._codes.setdefault(label, []).append(language)
        self.undetected = tuple(undetected)
        """The languages that the library does not know, which are never detected."""
        self._letters = letters_of(code for codes in self._codes.values() for code in codes)
        others = max(1, len(labels) - len(self._codes))
        self._others = math.log((1 - _PRIOR) / others)
        self._requested = math.log(_PRIOR / max(1, len(self._codes)))

    def detect(self, text: str) -> list[Detection]:
        """Return the languages that are at least 1% probable, the most probable first.

        The list is empty for a text without letters of their scripts, and for one that is probably in another language.
        Addresses, markup and placeholders are ignored; only the start of a long text is read.
        """
        words = _NO_TEXT.sub(" ", text[:_SEARCHED]).split()
        text = " ".join(word for word in words if not _is_address(word))[:_CLASSIFIED]
        if not self._codes or self._letters.search(text) is None:
            return []
        # with the blanks, even a single word has n-grams at its start and end
        padded = f" {text} "
        scores = dict(_model().rank(padded))
        if len(set(scores.values())) == 1:  # no n-gram that the library knows
            return []
        sharpness = _SHARPNESS * math.sqrt(len(padded.encode("utf-8", "surrogatepass")))
        weights = {
            label: score / sharpness + (self._requested if label in self._codes else self._others)
            for label, score in scores.items()
        }
        most = max(weights.values())
        total = sum(math.exp(weight - most) for weight in weights.values())
        percent = {label: 100 * math.exp(weights[label] - most) / total for label in self._codes}
        found = [
            Detection(code, round(percent[label] * share, 1))
            for label, codes in self._codes.items()
            if percent[label] >= _LEAST_PERCENT
            for code, share in zip(codes, variant_shares(text, codes), strict=True)
        ]
        return sorted(found, key=lambda each: -each.confidence)


def _is_address(word: str) -> bool:
    return "@" in word or "://" in word or word.startswith("www.")


@cache
def _model() -> Any:
    """py3langid's model of all its languages, with unnormalised scores."""
    module = import_optional("py3langid.langid", "serve", "py3langid")
    return module.LanguageIdentifier.from_model_file(module.MODEL_FILE)


def letters_of(codes: Iterable[str]) -> "regex.Pattern[str]":
    """Return a pattern for the letters of all these languages; any letter if the script of one is unknown."""
    names = set[str]()
    for code in codes:
        name = script_of(code)
        names.update(_LETTERS.get(name, (name,)))
        if language_of(code) in _SEVERAL_SCRIPTS and not has_script(code):
            names.update(("Latn", "Cyrl", "Arab"))
    return regex.compile(_ANY if "" in names or not names else f"[{''.join(map(_property, sorted(names)))}]")


def variant_shares(text: str, codes: Sequence[str]) -> list[float]:
    """Return the probability of each variant of a language, by the letters of its script; uniform if they share one."""
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
