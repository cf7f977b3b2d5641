"""Systems with several seeds are compared over seeds and sentences; the test is never more confident than it may be."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dragoman.metrics.registry import summed_metric
from dragoman.metrics.seed_comparison import compare_seeds, student_quantile, student_tails
from dragoman.metrics.summed import Statistics, SummedMetric


class Mean(SummedMetric):
    """The mean of one number per sentence."""

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        raise AssertionError("the tests give statistics")

    def corpus(self, sums: Statistics) -> np.ndarray:
        return sums[..., 0] / sums[..., 1]

    def signature(self, references: int) -> str:
        return "mean"


def system(generator: np.random.Generator, seeds: int, quality: np.ndarray, luck: float, noise: float) -> list:
    """Return the statistics of each seed: the sentences' common quality, the seed's luck, and noise."""
    size = len(quality)
    numbers = quality + luck * generator.normal(size=(seeds, 1)) + noise * generator.normal(size=(seeds, size))
    return [np.stack([each, np.ones(size)], 1) for each in numbers]


@given(st.floats(0, 30), st.floats(1, 500))
def test_student_is_that_of_scipy(value: float, freedom: float) -> None:
    assert student_tails(value, freedom) == pytest.approx(2 * stats.t.sf(value, freedom), abs=1e-5)


@given(st.floats(0.5, 0.999), st.floats(1, 500))
def test_quantiles_are_those_of_scipy(probability: float, freedom: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), rel=1e-4, abs=1e-6
    )


def test_without_differences_between_sentences_it_is_welchs_test() -> None:
    generator = np.random.default_rng(1)
    values = [generator.normal(size=4), 1 + 2 * generator.normal(size=3)]
    systems = [[np.stack([np.full(50, each), np.ones(50)], 1) for each in scores] for scores in values]
    result = compare_seeds(*systems, Mean())
    expected = stats.ttest_ind(values[1], values[0], equal_var=False)
    low, high = expected.confidence_interval()
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-5)
    assert (result.interval.low, result.interval.high) == pytest.approx((low, high), rel=1e-4)


@pytest.mark.parametrize(
    ("seeds", "luck"), [(2, 0.3), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, 0.0), (5, 0.3)))]
)
def test_equal_systems_are_rarely_called_different(seeds: int, luck: float) -> None:
    """At most 5% of 200 comparisons of equal systems are significant, plus three standard errors of this rate."""
    generator = np.random.default_rng(seeds)
    found = 0
    for _ in range(200):
        quality = generator.normal(size=60)
        systems = [system(generator, seeds, quality, luck, 0.5) for _ in range(2)]
        found += compare_seeds(*systems, Mean(), samples=100).is_significant
    assert found / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


def test_a_difference_beyond_both_kinds_of_luck_is_found() -> None:
    generator = np.random.default_rng(7)
    quality = generator.normal(size=200)
    first, second = system(generator, 3, quality, 0.1, 0.5), system(generator, 3, quality + 2, 0.1, 0.5)
    result = compare_seeds(first, second, Mean())
    assert result.is_significant and result.interval.low < 2 < result.interval.high and result.interval.low > 1


def test_one_seed_is_never_significant() -> None:
    generator = np.random.default_rng(7)
    quality = generator.normal(size=200)
    first, second = system(generator, 1, quality, 0.1, 0.5), system(generator, 3, quality + 2, 0.1, 0.5)
    result = compare_seeds(first, second, Mean())
    assert result.p_value < 0.001 and not result.includes_training and not result.is_significant


def test_equal_outputs_have_no_difference() -> None:
    metric = summed_metric("chrf")
    rows = metric.statistics(["a dog", "two cats"], ["a dog runs", "two cats"])
    result = compare_seeds([rows, rows], [rows, rows], metric)
    assert result.difference == 0 and result.p_value == 1 and not result.is_significant
