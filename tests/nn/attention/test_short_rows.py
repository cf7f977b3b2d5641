"""Weights of few keys, padded to the width of a vector register, equal those of torch's softmax."""

import pytest
import torch

from dragoman.nn.attention.weights import normalise
from dragoman.nn.mask import Mask


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("keys", [0, 1, 2, 15, 16, 17, 33])
def test_weights_and_gradients_equal_torch(kind: torch.dtype, keys: int) -> None:
    generator = torch.Generator().manual_seed(keys)
    scores = 5 * torch.randn(3, 2, 4, keys, generator=generator, dtype=torch.float64)
    weight = torch.randn(scores.shape, generator=generator, dtype=torch.float64).to(kind)
    own, theirs = (scores.to(kind).requires_grad_() for _ in range(2))
    # bfloat16 is rounded once, at the end
    expected = torch.softmax(theirs.to(torch.promote_types(kind, torch.float32)), -1).to(kind)
    found = normalise(own, None)
    assert found.dtype == kind
    torch.testing.assert_close(found, expected)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    assert own.grad is not None and theirs.grad is not None
    torch.testing.assert_close(own.grad, theirs.grad)


@pytest.mark.parametrize("keys", [5, 15, 16, 20])
def test_a_query_without_keys_has_zero_weights_and_no_gradient(keys: int) -> None:
    keep = torch.rand(3, 1, 4, keys, generator=torch.Generator().manual_seed(1)) < 0.5
    keep[0, 0, 1] = False
    keep[2] = False
    scores = torch.randn(3, 2, 4, keys, dtype=torch.bfloat16, requires_grad=True)
    weights = normalise(scores, Mask(keep))
    weights.float().square().sum().backward()
    assert scores.grad is not None and scores.grad.isfinite().all()
    some = keep.any(-1).expand(3, 2, 4)
    torch.testing.assert_close(weights.float().sum(-1), some.float(), atol=0.02, rtol=0)
    assert not weights[~keep.expand_as(weights)].any()
    assert not scores.grad[~keep.expand_as(weights)].any()
