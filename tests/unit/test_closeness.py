"""The tolerance of the tests: it accepts other orders of the same sum, and no other sum."""

import numpy as np
import pytest
import torch
from closeness import assert_all_close, assert_close, close_to, tolerance


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_another_order_of_a_sum_is_close_and_another_sum_is_not(dtype: torch.dtype, size: float) -> None:
    torch.manual_seed(1)
    terms = (torch.randn(40, 256, dtype=torch.float64) * size / 16).to(dtype)
    forwards, backwards = torch.zeros(40, dtype=dtype), torch.zeros(40, dtype=dtype)
    for number in range(256):
        forwards += terms[:, number]
        backwards += terms[:, 255 - number]
    assert not torch.equal(forwards, backwards)
    assert_close(forwards, backwards, terms=256)
    assert_close(forwards, terms.double().sum(1), terms=256)
    beyond = 2 * tolerance(float(forwards.double().abs().max()), 256, dtype)
    with pytest.raises(AssertionError, match="sums: "):
        assert_close(forwards.double() + beyond, forwards, terms=256, name="sums")


def test_a_formula_that_differs_by_a_ten_thousandth_is_noticed() -> None:
    torch.manual_seed(2)
    values = torch.randn(50)
    with pytest.raises(AssertionError):
        assert_close(values * 1.0003, values)


def test_terms_that_cancel_are_as_uncertain_as_the_others() -> None:
    expected = {"bias": torch.zeros(3), "weight": torch.tensor([100.0])}
    noise = {**expected, "bias": torch.full((3,), 1e-3)}
    assert_all_close(noise, expected)
    with pytest.raises(AssertionError, match="bias"):
        assert_all_close({**expected, "bias": torch.full((3,), 0.1)}, expected)
    with pytest.raises(AssertionError):
        assert_close(noise["bias"], expected["bias"])
    with pytest.raises(AssertionError):
        assert_all_close({"weight": expected["weight"]}, expected)


def test_values_that_are_not_finite_must_be_equal() -> None:
    given = torch.tensor([float("inf"), 1.0])
    assert_close(given, given)
    with pytest.raises(AssertionError):
        assert_close(torch.tensor([1.0, 1.0]), given)
    with pytest.raises(AssertionError):
        assert_close(torch.tensor([float("nan"), 1.0]), given)


def test_numbers_lists_and_dictionaries_are_compared_in_single_precision() -> None:
    values = [0.5, 200.0]
    assert values == close_to([0.50002, 200.005])
    assert values != close_to([0.501, 200.0])
    assert close_to({"a": 0.50002}) == {"a": 0.5}
    assert_close(np.array(values), [0.501, 200.001])
    with pytest.raises(AssertionError):
        assert_close(np.array(values), [0.51, 200.0])
