"""Perplexity per token and per word from summed log-probabilities."""

import math
from dataclasses import dataclass

from dragoman.base.errors import DataError


@dataclass(frozen=True)
class Perplexity:
    """How many equally likely choices a model's uncertainty amounts to.

    per_token: depends on the vocabulary, so it compares models that share one. per_word: compares any models on the
    same text. log_probability: natural, summed over the tokens. tokens and words include each line's end.
    """

    per_token: float
    per_word: float
    log_probability: float
    tokens: int
    words: int


def perplexity(log_probability: float, tokens: int, words: int) -> Perplexity:
    """exp(−log_probability / count), for both counts; infinite where a float can't hold it.

    log_probability: natural, summed over `tokens` tokens of a text, each line's end counted as one. words: the text's
    blank-separated words, and one for each line's end. Raises DataError where a count is 0 or the sum is not a number.
    """
    if tokens < 1 or words < 1:
        raise DataError(f"no perplexity of {tokens} tokens and {words} words; give a text with at least one line")
    if math.isnan(log_probability):
        raise DataError("no perplexity: the summed log-probability is not a number (NaN)")
    return Perplexity(_exp(-log_probability / tokens), _exp(-log_probability / words), log_probability, tokens, words)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
