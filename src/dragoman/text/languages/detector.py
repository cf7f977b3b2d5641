"""`Detector`: detects the language of a text among given languages; the language of a sample of sentences."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple

import regex

from dragoman.base.errors import DragomanError, ResourceError
from dragoman.base.packages import import_optional
from dragoman.text.languages.codes import base_language, closest_code
from dragoman.text.languages.usual_scripts import has_script, language_script

_COMBINED_SCRIPTS = {
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
    "Jpan": ("Hira", "Kana", "Hani"),
    "Kore": ("Hang", "Hani"),
}
"""The scripts that are combined in some ISO 15924 codes. Any other code denotes a single script."""

_MULTI_SCRIPT_LANGUAGES = frozenset("az bs crh ha kab kk ks ku ky mn ms pa sd sdh sr tg tk tt ug uz uzs".split())
"""Languages that are also written in Latin, Cyrillic or Arabic letters, in addition to their usual script."""

_ANY_LETTER = r"\p{L}"
_CHINESE_ENCODINGS = {"Hans": "gb2312", "Hant": "big5"}
"""Character sets that cover the usual characters of one Chinese script, but few that are specific to the other."""

_TEMPERATURE = 0.6
"""Scores are divided by this value · √bytes before the softmax; docs/explanation/language-detection.md."""

_PRIOR = 0.95
"""The prior probability that a text is in one of the languages to detect."""

_MAX_SEARCHED, _MAX_CLASSIFIED = 4_000, 2_000
"""The maximum number of characters that are searched for words, and the maximum number that are classified."""

_MIN_PERCENT = 1.0
_NON_TEXT = regex.compile(r"<[/!\p{L}][^<>]*>|&#?\w{1,32};|\{[^{}]{0,100}\}|%\(\w{1,100}\)[sd]")
"""Matches markup and placeholders. Unlike the patterns of `KeepRules`, it takes linear time on hostile input."""


class Detection(NamedTuple):
    """A detected language. language: its code, as passed to `Detector`; confidence: its probability in percent."""

    language: str
    confidence: float


class Detector:
    """Detects languages with py3langid, a naive Bayes classifier over byte n-grams (Lui and Baldwin 2012).

    All 139 languages of the library compete. Those that are not in `languages` share 5% of the prior. A Spanish text is
    therefore not classified as English with high confidence just because Spanish is not in `languages`. Thread-safe.
    The library's model takes about 90 MB, and is loaded only once.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """languages: codes such as `de`, `zh-Hans`, `pt-BR` or `nb`. The first of equally probable codes is preferred.

        Raises ConfigError if the library is not installed.
        """
        labels = tuple(_model().labels)
        self._codes: dict[str, list[str]] = {}
        """The codes in `languages`, grouped by label of the library."""
        undetected = []
        for language in dict.fromkeys(languages):
            label = closest_code(base_language(language), labels)
            if label is None:
                undetected.append(language)
            else:
                self._codes.setdefault(label, []).append(language)
        self.undetected = tuple(undetected)
        """The languages that the library does not support, which are never detected."""
        self._letter_pattern = letter_pattern(code for codes in self._codes.values() for code in codes)
        others = max(1, len(labels) - len(self._codes))
        self._other_prior = math.log((1 - _PRIOR) / others)
        self._language_prior = math.log(_PRIOR / max(1, len(self._codes)))

    def has_words(self, text: str) -> bool:
        """Return whether a text has letters of the languages outside addresses, markup and placeholders."""
        return self._letter_pattern.search(_words(text)) is not None

    def detect(self, text: str) -> list[Detection]:
        """Return the languages with a probability of at least 1%, the most probable one first.

        The list is empty for a text without letters of their scripts, and for a text that is probably in another
        language. Addresses, markup and placeholders are ignored. Only the start of a long text is used.
        """
        text = _words(text)
        if not self._codes or self._letter_pattern.search(text) is None:
            return []
        percent = self._percentages(text)
        detections = [
            Detection(code, round(percent[label] * fraction, 1))
            for label, codes in self._codes.items()
            if percent.get(label, 0.0) >= _MIN_PERCENT
            for code, fraction in zip(codes, variant_probabilities(text, codes), strict=True)
        ]
        return sorted(detections, key=lambda detection: -detection.confidence)

    def most_probable(self, text: str) -> Detection | None:
        """Return the most probable of all languages of the library, in `languages` or not; None for a text without
        n-grams of the library.

        A language in `languages` is returned as its first code, any other as its two-letter or three-letter code.
        """
        percent = self._percentages(_words(text))
        if not percent:
            return None
        label = max(percent, key=lambda each: percent[each])
        return Detection(self._codes.get(label, [label])[0], round(percent[label], 1))

    def _percentages(self, text: str) -> dict[str, float]:
        """Return the probability of each language of the library in percent; empty for a text without its n-grams."""
        # the blanks provide n-grams at the start and end, even for a single word
        padded = f" {text} "
        scores = dict(_model().rank(padded))
        if len(set(scores.values())) == 1:  # the text contains no n-gram of the library
            return {}
        temperature = _TEMPERATURE * math.sqrt(len(padded.encode("utf-8", "surrogatepass")))
        weights = {
            label: score / temperature + (self._language_prior if label in self._codes else self._other_prior)
            for label, score in scores.items()
        }
        largest = max(weights.values())
        total = sum(math.exp(weight - largest) for weight in weights.values())
        return {label: 100 * math.exp(weight - largest) / total for label, weight in weights.items()}


def _words(text: str) -> str:
    """Return the start of a text without addresses, markup and placeholders."""
    words = _NON_TEXT.sub(" ", text[:_MAX_SEARCHED]).split()
    return " ".join(word for word in words if not _is_address(word))[:_MAX_CLASSIFIED]


def _is_address(word: str) -> bool:
    return "@" in word or "://" in word or word.startswith("www.")


@cache
def _model() -> Any:
    """Return py3langid's model of all languages, with unnormalised scores."""
    module = import_optional("py3langid.langid", "serve", "py3langid")
    try:
        return module.LanguageIdentifier.from_model_file(module.MODEL_FILE)
    except OSError as error:  # it is unpacked into a temporary file
        raise ResourceError(
            f"the model of the language detection cannot be unpacked ({error}): set TMPDIR to a writable folder"
        ) from None


def release_model() -> None:
    """Free the memory of the library's model. The next detection loads it again."""
    _model.cache_clear()


def letter_pattern(codes: Iterable[str]) -> "regex.Pattern[str]":
    """Return a pattern that matches the letters of all these languages, or any letter if a script is unknown."""
    names = set[str]()
    for code in codes:
        name = language_script(code)
        names.update(_COMBINED_SCRIPTS.get(name, (name,)))
        if base_language(code) in _MULTI_SCRIPT_LANGUAGES and not has_script(code):
            names.update(("Latn", "Cyrl", "Arab"))
    return regex.compile(_ANY_LETTER if "" in names or not names else f"[{''.join(map(_script_class, sorted(names)))}]")


def variant_probabilities(text: str, codes: Sequence[str]) -> list[float]:
    """Return the probability of each variant of a language by its fraction of the letters, or equal fractions.

    The fractions are equal if all variants have the same script.
    """
    names = [language_script(code) for code in codes]
    if len(set(names)) == 1:
        return [1 / len(codes)] * len(codes)
    counts = dict.fromkeys(names, 0.5)
    for letter, count in Counter(filter(str.isalpha, text)).items():
        candidates = [name for name in counts if _belongs_to_script(name, letter)]
        if len(candidates) == 1:
            counts[candidates[0]] += count
    total = sum(counts[name] for name in names)
    return [counts[name] / total for name in names]


@lru_cache(maxsize=1 << 14)
def _belongs_to_script(name: str, letter: str) -> bool:
    if name in _CHINESE_ENCODINGS:
        try:
            return bool(letter.encode(_CHINESE_ENCODINGS[name]))
        except UnicodeEncodeError:
            return False
    return bool(name) and regex.match(_script_class(name), letter) is not None


def _script_class(name: str) -> str:
    return rf"\p{{Script={name}}}"


_SENTENCES, _CHARACTERS = 200, 2_000
"""The maximum size of a sample."""

_MIN_LETTERS, _MIN_CONFIDENCE = 100, 95.0
"""A shorter sample, or a less probable language, is not a basis for a statement about a whole corpus."""


def sample_language(sentences: Iterable[str]) -> str | None:
    """Return the two-letter or three-letter code of the language of sentences.

    Returns None if there are fewer than 100 letters, if no language has a probability of at least 95%, or if the
    library of the detector is not installed. Call `release_model` after the last sample.
    """
    return _detect(" ".join(islice(sentences, _SENTENCES))[:_CHARACTERS])


@lru_cache(maxsize=16)  # each checkpoint of a run has the same sample
def _detect(text: str) -> str | None:
    if sum(map(str.isalpha, text)) < _MIN_LETTERS:
        return None
    try:
        detection = Detector([]).most_probable(text)
    except DragomanError:
        return None
    return None if detection is None or detection.confidence < _MIN_CONFIDENCE else detection.language
