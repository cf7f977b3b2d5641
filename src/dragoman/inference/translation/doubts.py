"""`DoubtFinder`: what speaks against the translation of a sentence, for the reader who cannot judge it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import regex

from dragoman.checkpoint.confidence import Confidence, per_token
from dragoman.inference.translation.result import Translation
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer

_WORD = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}\p{Armenian}\p{Georgian}\p{M}]+")
"""Matches words of scripts that divide their words by blanks."""

_SHORTEST = 5
"""Number of letters that a word needs to be called unknown because its subwords are short."""

_RARE = 0.002
"""Fraction of the words of a validation set that are called unknown because their subwords are short."""

_MOST = 1.5
"""Number of letters per subword that no unknown word needs to exceed; whole words are one subword."""


@dataclass(frozen=True)
class Doubts:
    """Doubts about the translation of a sentence.

    unknown_words: words of the source that the model does not know, in order. expected_chrf: the chrF (0 to 100) that
    translations of this probability had on the validation set; None if it was not measured. is_improbable: whether it
    is below the threshold, or the translation is less probable than 99% of those of the validation set.
    """

    unknown_words: tuple[str, ...] = ()
    expected_chrf: float | None = None
    is_improbable: bool = False


class DoubtFinder:
    """Finds doubts about translations by one model."""

    def __init__(self, tokenizer: Tokenizer, confidence: Confidence | None, threshold: float) -> None:
        """tokenizer: of the source. confidence: of the model, if it was measured. threshold: the lowest expected chrF
        that is not doubted.
        """
        self._tokenizer, self._confidence, self._threshold = tokenizer, confidence, threshold

    def doubts(self, source: str, translation: Translation) -> Doubts:
        """Return the doubts about the best translation of a source."""
        unknown = tuple(dict.fromkeys(self._unknown_words(source)))
        confidence = self._confidence
        if confidence is None or translation.patched or not source.strip():
            return Doubts(unknown)
        tokens = len(translation.ids)
        value = per_token(translation.log_probability, tokens)
        expected = confidence.expected(value)
        return Doubts(unknown, round(expected, 1), expected < self._threshold or value < confidence.lowest)

    def _unknown_words(self, source: str) -> list[str]:
        limit = 0.0 if self._confidence is None else self._confidence.spelled_out
        return [
            word
            for word, ids in _encoded(self._tokenizer, source)
            if UNK in ids or len(ids) > len(word) + 1 > 2 or (len(word) >= _SHORTEST and len(word) < limit * len(ids))
        ]


def spelled_out(tokenizer: Tokenizer, sources: Iterable[str]) -> float:
    """Return the number of letters per subword that all but a few words of texts reach, for `Confidence.spelled_out`.

    A vocabulary divides words that it has not seen, such as foreign names and wrong keys, into many short subwords.
    """
    ratios = [
        len(word) / len(ids)
        for source in sources
        for word, ids in _encoded(tokenizer, source)
        if len(word) >= _SHORTEST
    ]
    return min(_MOST, float(np.quantile(ratios, _RARE))) if ratios else 0.0


def _encoded(tokenizer: Tokenizer, text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield each word of a text with its ids."""
    words = _WORD.findall(text)
    return zip(words, tokenizer.encode_batch(words), strict=True)
