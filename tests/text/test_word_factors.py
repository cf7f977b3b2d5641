"""The factors of words: their values, worked out by hand, and the numbers that stand for them in every process."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.word_factors import NO_FACTOR, count_factors, factor_numbers, word_factors

WORD = st.text(st.characters(exclude_categories=["Zs", "Cc"]), max_size=12)


@pytest.mark.parametrize(
    ("word", "factors"),
    [
        ("McKay", "McKay mckay m mc mck mcka y ay kay ckay XxXxx XxXx"),
        ("U.S.", "U.S. u.s. u u. u.s u.s. . s. .s. u.s. X.X. X.X."),
        ("at", "at at a at at at t at at at xx x"),
        ("1997-98", "1997-98 1997-98 1 19 199 1997 8 98 -98 7-98 dddd-dd d-d"),
        ("Łódź", "Łódź łódź ł łó łód łódź ź dź ódź łódź Xxxx Xx"),
        ("犬が", "犬が 犬が 犬 犬が 犬が 犬が が 犬が 犬が 犬が 犬が 犬が"),
    ],
)
def test_values(word: str, factors: str) -> None:
    assert word_factors(word) == tuple(factors.split())


@given(word=WORD, columns=st.lists(st.text(max_size=3), max_size=2))
def test_every_factor_has_a_number(word: str, columns: list[str]) -> None:
    numbers = factor_numbers(word, tuple(columns))
    assert len(numbers) == count_factors(len(columns)) == len(word_factors(word)) + len(columns)
    assert min(numbers) > NO_FACTOR and max(numbers) <= 2**24


def test_numbers_are_equal_in_every_process() -> None:
    code = "from dragoman.text.word_factors import factor_numbers; print(factor_numbers('Rome', ('NNP',)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == str(factor_numbers("Rome", ("NNP",)))


def test_numbers_of_models_do_not_change() -> None:
    """A trained model has learned a vector for each of these numbers."""
    assert factor_numbers("Rome", ("NNP",)) == (
        *(12220563, 2445735, 13906960, 4642862, 12537802, 15375959, 14045660),
        *(5598960, 11526787, 6206558, 5762330, 8741175, 425949),
    )


def test_values_are_spread_evenly() -> None:
    """With random numbers, 1,000 values leave 1,000 · e⁻¹ = 368 of 1,000 buckets empty."""
    found = Counter(factor_numbers(f"word{number}", ())[0] % 1000 for number in range(1000))
    assert 330 < 1000 - len(found) < 406  # 368 ± 4 standard deviations of 9.5


def test_equal_values_of_different_factors_have_different_numbers() -> None:
    at = factor_numbers("at", ("at", "at"))
    assert len(set(at)) == len(at)
