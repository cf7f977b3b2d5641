"""Dropout: its rate, its positions, and the factor of the remaining values."""

from concurrent.futures import ThreadPoolExecutor
from math import sqrt

import pytest
import torch

from dragoman.nn.dropout import Dropout, scale_dropout

SIZE = 200_000


def dropped(rate: float, size: int = SIZE, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(rate)(torch.ones(size, dtype=dtype))


def rounded(rate: float) -> float:
    return max(1, round(rate * 256)) / 256


def bound(rate: float, draws: int) -> float:
    """Five standard deviations of a share: a correct implementation fails for one seed in a million."""
    return 5 * sqrt(rate * (1 - rate) / draws)


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.3, 0.5, 0.9, 0.99])
def test_the_rate_and_the_mean_are_kept(rate: float) -> None:
    result = dropped(rate)
    share = rounded(rate)
    assert abs(float((result == 0).double().mean()) - share) < bound(share, SIZE)
    kept = result[result != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)))
    assert abs(float(result.double().mean()) - 1) < bound(share, SIZE) / (1 - share)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.75])
def test_every_position_is_dropped_equally_often(rate: float) -> None:
    """Masks are cut from 64-bit draws: draws with fewer bits would spoil every eighth position."""
    places = (dropped(rate).view(-1, 8) == 0).double().mean(0)
    share = rounded(rate)
    assert float((places - share).abs().max()) < bound(share, SIZE // 8), places


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_neighbours_are_dropped_independently(rate: float) -> None:
    zero = (dropped(rate) == 0).double()
    share = rounded(rate)
    for distance in (1, 2, 4, 8, 16):
        both = float((zero[distance:] * zero[:-distance]).mean())
        assert abs(both - share**2) < bound(share**2, SIZE - distance) * 1.5


def test_backward_uses_the_mask_of_forward() -> None:
    torch.manual_seed(3)
    values = torch.randn(50, 33, requires_grad=True)
    result = Dropout(0.3)(values)
    result.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(result, values * values.grad)
    assert sorted(values.grad.unique().tolist()) == pytest.approx([0, 256 / (256 - 77)])


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5, 11), (0, 4)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    result = Dropout(0.5)(torch.ones(shape))
    assert result.shape == shape
    assert set(result.flatten().tolist()) <= {0.0, 2.0}


def test_values_that_are_not_contiguous() -> None:
    torch.manual_seed(5)
    values = torch.arange(1.0, 13.0).view(3, 4).t().requires_grad_()
    result = Dropout(0.5)(values)
    torch.testing.assert_close(result[result != 0], 2 * values[result != 0])


def test_a_seed_fixes_the_mask() -> None:
    assert torch.equal(dropped(0.3, seed=7), dropped(0.3, seed=7))
    assert not torch.equal(dropped(0.3, seed=7), dropped(0.3, seed=8))
    torch.manual_seed(7)
    module = Dropout(0.3)
    first, second = (module(torch.ones(1000)) for _ in range(2))
    assert not torch.equal(first, second)


def test_evaluation_changes_nothing() -> None:
    values = torch.randn(100)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)


def test_bfloat16() -> None:
    result = dropped(0.1, dtype=torch.bfloat16)
    assert result.dtype == torch.bfloat16
    share = rounded(0.1)
    assert abs(float((result == 0).double().mean()) - share) < bound(share, SIZE)
    assert float(result.max()) == pytest.approx(1 / (1 - share), rel=2**-8)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="dropout rate"):
        Dropout(rate)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_share_of_the_rate_is_dropped(share: float) -> None:
    with scale_dropout(share):
        result = dropped(0.4)
    expected = rounded(0.4 * share) if share else 0.0
    assert abs(float((result == 0).double().mean()) - expected) <= bound(expected, SIZE)
    torch.testing.assert_close(result.max(), torch.tensor(1 / (1 - expected)))
    assert float((dropped(0.4) == 0).double().mean()) > 0.39, "it ends with the context"


def test_a_share_applies_to_one_thread() -> None:
    """Threads that divide an update each set their own; others are not affected."""
    with scale_dropout(0.0), ThreadPoolExecutor(1) as pool:
        assert float((pool.submit(dropped, 0.4).result() == 0).double().mean()) > 0.39


def test_a_factor_on_the_device_scales_the_rate() -> None:
    dropout, ones = Dropout(0.5), torch.ones(200, 500)
    for factor in (0.0, 0.4, 1.0):
        with scale_dropout(torch.tensor(factor)):
            result = dropout(ones)
            with pytest.raises(RuntimeError, match="on the device"):
                dropout.current_rate  # noqa: B018
        assert abs(float((result == 0).float().mean()) - 0.5 * factor) < 0.01
        assert abs(float(result.mean()) - 1) < 0.02
    with scale_dropout(torch.tensor(1.0)):
        assert dropout.eval()(ones) is ones
