"""Perplexity of known distributions, and of texts that have none."""

import math

import pytest

from dragoman.base.errors import DataError
from dragoman.evaluate.perplexity import perplexity


def test_a_uniform_choice_has_its_size_as_perplexity() -> None:
    result = perplexity(20 * math.log(1 / 8), tokens=20, words=10)
    assert result.per_token == pytest.approx(8)
    assert result.per_word == pytest.approx(64)
    assert (result.tokens, result.words) == (20, 10)


def test_an_impossible_text_is_infinite_and_no_overflow() -> None:
    assert perplexity(-math.inf, 3, 3).per_token == math.inf
    assert perplexity(-1e6, 3, 3).per_word == math.inf


def test_what_has_no_perplexity_is_refused() -> None:
    with pytest.raises(DataError, match="0 tokens"):
        perplexity(0.0, 0, 0)
    with pytest.raises(DataError, match="NaN"):
        perplexity(math.nan, 3, 3)
