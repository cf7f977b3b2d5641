"""Numeric settings of searches and sampling have bounds, which are checked before any work begins."""

import math

import pytest

from dragoman.base.errors import ConfigError
from dragoman.decode.decoding import Sampling, search_config
from dragoman.decode.rules.length_penalty import GNMTPenalty


@pytest.mark.parametrize("value", [3000, 10.5, math.inf, -math.inf, math.nan, -0.1, "1e400"])
def test_a_length_penalty_outside_its_bounds_is_rejected(value: float | str) -> None:
    with pytest.raises(ConfigError, match=r"length_penalty\.alpha: should be"):
        search_config({}, length_penalty=value)


def test_too_many_hypotheses_are_rejected() -> None:
    with pytest.raises(ConfigError, match="nbest: should be"):
        search_config({}, nbest=10**9)


def test_the_largest_length_penalty_is_finite_for_the_longest_output() -> None:
    assert search_config({}, length_penalty=10).length_penalty == GNMTPenalty(alpha=10)
    assert math.isfinite(GNMTPenalty(alpha=10).divisor(1_000_000))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("beam", 10**9),
        ("coverage_penalty", math.inf),
        ("coverage_penalty", 1e30),
        ("length_factor", math.inf),
        ("length_factor", 1e300),
        ("length_margin", 10**30),
        ("maximum_length", 10**30),
        ("minimum_length", 10**30),
        ("minimum_factor", math.nan),
        ("no_repeat_ngram", 10**30),
    ],
)
def test_a_search_setting_outside_its_bounds_is_rejected(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        search_config({name: value})


@pytest.mark.parametrize(
    "arguments",
    [
        {"temperature": -0.1},
        {"temperature": 1e300},
        {"temperature": math.inf},
        {"temperature": math.nan},
        {"top_k": 10**30},
        {"top_p": 1.5},
        {"top_p": math.nan},
        {"seed": -1},
        {"seed": 2**63},
        {"samples": 0},
        {"samples": 10**9},
    ],
)
def test_sampling_settings_outside_their_bounds_are_rejected(arguments: dict[str, float]) -> None:
    (name,) = arguments
    with pytest.raises(ConfigError, match=name):
        Sampling.of(**arguments)  # type: ignore[arg-type]
