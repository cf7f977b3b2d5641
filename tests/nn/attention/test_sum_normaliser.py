"""Weights by softplus and division, compared with the formula in NumPy, down to very low scores."""

import numpy as np
import pytest
import torch

from dragoman.nn.attention.weights import normalise
from dragoman.nn.mask import Mask


@pytest.mark.parametrize("shift", [0.0, -10.0, -15.0, -50.0, -300.0])
def test_weights_are_the_formula_and_sum_to_one(shift: float) -> None:
    scores = torch.randn(4, 1, 3, 6, generator=torch.Generator().manual_seed(1)) * 3 + shift
    positive = np.logaddexp(0, scores.double().numpy())
    expected = torch.from_numpy(positive / positive.sum(-1, keepdims=True))
    torch.testing.assert_close(normalise(scores, None, "sum").double(), expected, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(normalise(scores.double(), None, "sum"), expected, rtol=1e-11, atol=0)


def test_very_low_scores_have_weights_and_gradients_and_no_key_gives_zeros() -> None:
    scores = torch.tensor([[[[-1000.0, -1001.0, 5.0]]], [[[1.0, 2.0, 3.0]]]], requires_grad=True)
    keep = torch.tensor([[True, True, False], [False, False, False]])
    weights = normalise(scores, Mask(keep[:, None, None]), "sum")
    share = float(1 / (1 + np.exp(-1)))  # of two exponentials
    expected = torch.tensor([share, 1 - share, 0.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close(weights.flatten(), expected, rtol=1e-5, atol=1e-6)
    (weights * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    torch.testing.assert_close(scores.grad[0, 0, 0, 1], torch.tensor(share * (1 - share), dtype=torch.float32))
    assert not scores.grad[1].any()


def test_the_derivative_holds_on_both_sides_of_the_switch() -> None:
    scores = torch.tensor([[-14.9, -15.1, -20.0, -13.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: normalise(each, None, "sum"), (scores,), eps=1e-6, atol=1e-8)
