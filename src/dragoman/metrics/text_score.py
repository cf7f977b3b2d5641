"""`TextScore`: the log-probability of a text, and its perplexity per token, word and byte."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dragoman.base.errors import DataError
from dragoman.text import words
from dragoman.text.symbols import UNK


@dataclass(frozen=True)
class TextScore:
    """The log-probability (nats) of one or more texts, including their ends, and the size of these texts.

    tokens: number of subwords, plus one for the end of each text. words, bytes: numbers as counted by `count_words` and
    `count_bytes`. unknown: number of unknown tokens. An unknown token is predicted as a single token, regardless of the
    text that it replaces. If there are unknown tokens, the true log-probability of the text is lower, and the
    perplexities per word and byte are lower bounds. unknown_log_probability: the part of `log_probability` that belongs
    to unknown tokens, which `per_known_token` excludes; None if it was not computed.

    A perplexity is exp(−log_probability / count), or infinity if this exceeds the range of a float. At perplexity N,
    the model is as uncertain as a choice among N equally likely units. `per_token` is comparable between models with
    the same vocabulary. `per_word` and `per_byte` are comparable between any models on the same text. In scripts
    without spaces between words, `per_word` is the perplexity per character. The log₂ of `per_byte` is the number of
    bits per byte.
    """

    log_probability: float
    tokens: int
    words: int
    bytes: int
    unknown: int = 0
    unknown_log_probability: float | None = None

    @staticmethod
    def of(
        text: str, ids: Sequence[int], log_probability: float, unknown_log_probability: float | None = None
    ) -> "TextScore":
        """Return the score of one text. ids: token ids of the text, without the end-of-sentence symbol."""
        unknown = sum(token == UNK for token in ids)
        counts = (len(ids) + 1, count_words(text), count_bytes(text), unknown)
        return TextScore(log_probability, *counts, unknown_log_probability)

    @staticmethod
    def total(scores: Iterable["TextScore"]) -> "TextScore":
        """Return the score of all texts together. Raises DataError if there are no texts, or if the sum is NaN."""
        all_scores = list(scores)
        if not all_scores:
            raise DataError("a perplexity needs at least one text, but there is none: give at least one line")
        log_probability = sum(score.log_probability for score in all_scores)
        if math.isnan(log_probability):
            raise DataError("the perplexity is undefined: the summed log-probability is not a number (NaN)")
        counts = ([getattr(score, name) for score in all_scores] for name in ("tokens", "words", "bytes", "unknown"))
        parts = [score.unknown_log_probability for score in all_scores]
        unknown = None if None in parts else sum(part for part in parts if part is not None)
        return replace(TextScore(log_probability, *map(sum, counts)), unknown_log_probability=unknown)

    @property
    def per_token(self) -> float:
        """Perplexity per token."""
        return _perplexity(self.log_probability, self.tokens)

    @property
    def per_known_token(self) -> float | None:
        """Perplexity per token without the unknown tokens; None if their log-probability was not computed."""
        if self.unknown_log_probability is None:
            return None
        known = self.log_probability - self.unknown_log_probability
        return _perplexity(known, self.tokens - self.unknown)

    @property
    def per_word(self) -> float:
        """Perplexity per word."""
        return _perplexity(self.log_probability, self.words)

    @property
    def per_byte(self) -> float:
        """Perplexity per byte."""
        return _perplexity(self.log_probability, self.bytes)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types, without the values for unknown tokens if they were not computed."""
        perplexities = {"per_token": self.per_token, "per_word": self.per_word, "per_byte": self.per_byte}
        values = {**perplexities, "per_known_token": self.per_known_token, **asdict(self)}
        return {name: value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        known = self.per_known_token
        without = "" if known is None else f". Without unknown tokens, the perplexity per token is {known:.3f}"
        unknown = (
            f"; {self.unknown} tokens ({self.unknown / self.tokens:.2%}) are unknown: each is predicted as one token, "
            f"whatever text it replaces, so the perplexities per word and byte are lower bounds{without}"
            if self.unknown
            else ""
        )
        return (
            f"log-probability {self.log_probability:.2f} nats; perplexity per token {self.per_token:.3f} "
            f"({self.tokens} tokens), per word {self.per_word:.3f} ({self.words} words), per byte {self.per_byte:.4f} "
            f"({self.bytes} bytes), including ends of lines and texts{unknown}"
        )


def _perplexity(log_probability: float, count: int) -> float:
    try:
        return math.exp(-log_probability / count)
    except OverflowError:
        return math.inf


def count_words(text: str) -> int:
    """Return the number of words, plus one for the end of each line and of the text.

    In scripts without spaces between words, each character counts as a word.
    """
    return words.count_words(text) + 1 + text.count("\n")


def count_bytes(text: str) -> int:
    """Return the number of bytes in UTF-8, plus one for the end of the text."""
    return len(text.encode()) + 1
