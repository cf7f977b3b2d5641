"""`TextScore`: a text's log-probability, and its perplexity per token, word and byte."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.base.errors import DataError
from dragoman.text.symbols import UNK


@dataclass(frozen=True)
class TextScore:
    """log p of a text and its end, or of several together, in nats, and over what it is a sum.

    tokens: subwords, and one for each text's end. words, bytes: as `words_of` and `bytes_of` count them. unknown:
    tokens that stand for what the vocabulary lacks; each is predicted as one token, whatever it stands for, so with any
    of them the text's true log-probability is lower, and the perplexities a word and a byte are lower bounds.

    A perplexity is exp(−log_probability / count), infinite where a float cannot hold it: to so many equally likely
    choices the model's uncertainty amounts. per_token: compares models that share a vocabulary. per_word, per_byte:
    compare any models on the same text, the latter in any language; its log₂ is bits a byte.
    """

    log_probability: float
    tokens: int
    words: int
    bytes: int
    unknown: int = 0

    @staticmethod
    def of(text: str, ids: Sequence[int], log_probability: float) -> "TextScore":
        """One text's; ids: of it, without its end."""
        unknown = sum(number == UNK for number in ids)
        return TextScore(log_probability, len(ids) + 1, words_of(text), bytes_of(text), unknown)

    @staticmethod
    def total(scores: Iterable["TextScore"]) -> "TextScore":
        """Of all texts together. Raises DataError where there is none, and where the sum is not a number."""
        given = list(scores)
        if not given:
            raise DataError("no perplexity of no text: give at least one line")
        log_probability = sum(score.log_probability for score in given)
        if math.isnan(log_probability):
            raise DataError("no perplexity: the summed log-probability is not a number (NaN)")
        counts = ([getattr(score, name) for score in given] for name in ("tokens", "words", "bytes", "unknown"))
        return TextScore(log_probability, *map(sum, counts))

    @property
    def per_token(self) -> float:
        """Perplexity a token."""
        return self._per(self.tokens)

    @property
    def per_word(self) -> float:
        """Perplexity a word."""
        return self._per(self.words)

    @property
    def per_byte(self) -> float:
        """Perplexity a byte."""
        return self._per(self.bytes)

    def _per(self, count: int) -> float:
        try:
            return math.exp(-self.log_probability / count)
        except OverflowError:
            return math.inf

    def as_json(self) -> dict[str, Any]:
        """Everything in plain types."""
        perplexities = {"per_token": self.per_token, "per_word": self.per_word, "per_byte": self.per_byte}
        return {**perplexities, **asdict(self)}

    def __str__(self) -> str:
        unknown = (
            f"; {self.unknown} tokens ({self.unknown / self.tokens:.2%}) are unknown: each is predicted as one token, "
            "whatever it stands for, so the perplexities a word and a byte are lower bounds"
            if self.unknown
            else ""
        )
        return (
            f"log-probability {self.log_probability:.2f} nats; perplexity a token {self.per_token:.3f} "
            f"({self.tokens} tokens), a word {self.per_word:.3f} ({self.words} words), a byte {self.per_byte:.4f} "
            f"({self.bytes} bytes); ends of lines and texts counted{unknown}"
        )


def words_of(text: str) -> int:
    """What stands between blanks, and one for each line's end, the text's end among them."""
    return len(text.split()) + 1 + text.count("\n")


def bytes_of(text: str) -> int:
    """Of UTF-8, and one for the text's end."""
    return len(text.encode()) + 1
