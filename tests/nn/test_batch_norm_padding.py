"""Batch normalisation next to padding with values of any size that grow from layer to layer."""

import torch

from dragoman.nn.normalisation import BatchNormConfig


def test_padding_however_large_changes_nothing() -> None:
    states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    keep = torch.tensor([[True, True, False], [True, False, False]])
    found = []
    for filling in (0.0, 3e37, torch.inf):
        norm = BatchNormConfig().build(4)
        filled = states.masked_fill(~keep.unsqueeze(2), filling).requires_grad_()
        result = norm(filled, keep)[keep]
        (gradient,) = torch.autograd.grad(result.square().sum() + result.sum(), filled)
        found.append((result.detach(), gradient, norm.running_mean, norm.running_var))
    plain, *others = found
    assert plain[1][keep].abs().sum() > 0
    for other in others:
        for one, two in zip(plain, other, strict=True):
            assert torch.equal(one, two)
