"""`TextScore`: the log-probability of a text, and its perplexity per token, word and byte."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.base.errors import DataError
from dragoman.text.symbols import UNK


@dataclass(frozen=True)
class TextScore:
    """The log-probability (nats) of a text and its end, or of several texts, and the numbers of units it sums over.

    tokens: subwords, plus one for the end of each text. words, bytes: as counted by `words_of` and `bytes_of`. unknown:
    number of unknown tokens. Each is predicted as one token, whatever text it replaces, so if there are any, the true
    log-probability of the text is lower, and the perplexities per word and byte are lower bounds.

    A perplexity is exp(−log_probability / count), infinite if it exceeds a float: at perplexity N, the model is as
    uncertain as a choice among N equally likely units. per_token is comparable between models with the same vocabulary,
    per_word and per_byte between any models on the same text, per_byte in any language. Its log₂ is bits per byte.
    """

    log_probability: float
    tokens: int
    words: int
    bytes: int
    unknown: int = 0

    @staticmethod
    def of(text: str, ids: Sequence[int], log_probability: float) -> "TextScore":
        """Return the score of one text. ids: its tokens without the end-of-sentence symbol."""
        unknown = sum(number == UNK for number in ids)
        return TextScore(log_probability, len(ids) + 1, words_of(text), bytes_of(text), unknown)

    @staticmethod
    def total(scores: Iterable["TextScore"]) -> "TextScore":
        """Return the score of all texts together. Raises DataError if there are none, or if the sum is NaN."""
        given = list(scores)
        if not given:
            raise DataError("there is no text to compute a perplexity of: give at least one line")
        log_probability = sum(score.log_probability for score in given)
        if math.isnan(log_probability):
            raise DataError("the perplexity is undefined: the summed log-probability is not a number (NaN)")
        counts = ([getattr(score, name) for score in given] for name in ("tokens", "words", "bytes", "unknown"))
        return TextScore(log_probability, *map(sum, counts))

    @property
    def per_token(self) -> float:
        """Perplexity per token."""
        return self._per(self.tokens)

    @property
    def per_word(self) -> float:
        """Perplexity per word."""
        return self._per(self.words)

    @property
    def per_byte(self) -> float:
        """Perplexity per byte."""
        return self._per(self.bytes)

    def _per(self, count: int) -> float:
        try:
            return math.exp(-self.log_probability / count)
        except OverflowError:
            return math.inf

    def as_json(self) -> dict[str, Any]:
        """Return all values as plain types."""
        perplexities = {"per_token": self.per_token, "per_word": self.per_word, "per_byte": self.per_byte}
        return {**perplexities, **asdict(self)}

    def __str__(self) -> str:
        unknown = (
            f"; {self.unknown} tokens ({self.unknown / self.tokens:.2%}) are unknown: each is predicted as one token, "
            "whatever text it replaces, so the perplexities per word and byte are lower bounds"
            if self.unknown
            else ""
        )
        return (
            f"log-probability {self.log_probability:.2f} nats; perplexity per token {self.per_token:.3f} "
            f"({self.tokens} tokens), per word {self.per_word:.3f} ({self.words} words), per byte {self.per_byte:.4f} "
            f"({self.bytes} bytes), including ends of lines and texts{unknown}"
        )


def words_of(text: str) -> int:
    """Return the number of blank-separated words, plus one for the end of each line and of the text."""
    return len(text.split()) + 1 + text.count("\n")


def bytes_of(text: str) -> int:
    """Return the number of bytes in UTF-8, plus one for the end of the text."""
    return len(text.encode()) + 1
