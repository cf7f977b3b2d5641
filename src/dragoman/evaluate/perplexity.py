"""Perplexity per token, per word and per byte from summed log-probabilities."""

import math
from dataclasses import dataclass

from dragoman.base.errors import DataError


@dataclass(frozen=True)
class Perplexity:
    """How many equally likely choices a model's uncertainty amounts to.

    per_token: depends on the vocabulary, so it compares models that share one. per_word, per_byte: compare any models
    on the same text, as long as none of its tokens is unknown: an unknown is one token, whatever it stands for, so
    with any of them these two are lower bounds. log_probability: natural, summed over the tokens. tokens, words and
    bytes include each line's end; bytes is None, and per_byte with it, where nobody has counted.
    """

    per_token: float
    per_word: float
    log_probability: float
    tokens: int
    words: int
    per_byte: float | None = None
    bytes: int | None = None


def perplexity(log_probability: float, tokens: int, words: int, size: int | None = None) -> Perplexity:
    """exp(−log_probability / count), for each count; infinite where a float can't hold it.

    log_probability: natural, summed over `tokens` tokens of a text, each line's end counted as one. words: the text's
    blank-separated words, and one for each line's end. size: bytes of UTF-8, ends included. Raises DataError
    where a count is 0 or the sum is not a number.
    """
    if tokens < 1 or words < 1:
        raise DataError(f"no perplexity of {tokens} tokens and {words} words; give a text with at least one line")
    if math.isnan(log_probability):
        raise DataError("no perplexity: the summed log-probability is not a number (NaN)")
    return Perplexity(
        _exp(-log_probability / tokens),
        _exp(-log_probability / words),
        log_probability,
        tokens,
        words,
        None if size is None else _exp(-log_probability / size),
        size,
    )


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
