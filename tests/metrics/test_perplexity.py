"""Perplexity of known distributions, the counted units, and texts without perplexity."""

import math
from typing import Any

import pytest

from dragoman.base.errors import DataError
from dragoman.metrics.text_score import TextScore
from dragoman.text.symbols import UNK


def score(log_probability: float, **counts: Any) -> TextScore:
    return TextScore(**{"log_probability": log_probability, "tokens": 3, "words": 3, "bytes": 3, **counts})


def test_the_perplexity_of_a_uniform_choice_is_its_size() -> None:
    result = score(20 * math.log(1 / 8), tokens=20, words=10, bytes=60)
    assert result.per_token == pytest.approx(8)
    assert result.per_word == pytest.approx(64)
    assert result.per_byte == pytest.approx(2)
    assert result.as_json() == {
        "per_token": result.per_token,
        "per_word": result.per_word,
        "per_byte": result.per_byte,
        "log_probability": result.log_probability,
        "tokens": 20,
        "words": 10,
        "bytes": 60,
        "unknown": 0,
    }


def test_ends_are_counted_and_unknowns_reported() -> None:
    """A text of two lines has five words and two ends, 23 bytes and the last end."""
    found = TextScore.of("two dogs – one\nsleeps", [4, UNK, 5, 6], -3.0)
    assert found == TextScore(-3.0, tokens=5, words=7, bytes=24, unknown=1)
    whole = TextScore.total([found, TextScore.of("", [], -1.0)])
    assert whole == TextScore(-4.0, tokens=6, words=8, bytes=25, unknown=1)
    assert "1 tokens (16.67%) are unknown" in str(whole)
    assert "unknown" not in str(score(-1.0))


def test_an_impossible_text_is_infinite_and_no_overflow() -> None:
    assert score(-math.inf).per_token == math.inf
    assert score(-1e6).per_word == math.inf


def test_texts_without_perplexity_are_refused() -> None:
    with pytest.raises(DataError, match="at least one line"):
        TextScore.total([])
    with pytest.raises(DataError, match="NaN"):
        TextScore.total([score(-1.0), score(math.nan)])
