"""LayerNorm, RMSNorm and batch norm against torch's modules; batch norm only over the real tokens."""

import pytest
import torch
from closeness import assert_close
from torch import nn

from dragoman.nn.normalisation import BatchNormConfig, LayerNormConfig, RMSNormConfig
from dragoman.nn.residual import Residual

WIDTH = 6


def states() -> torch.Tensor:
    return torch.randn(3, 5, WIDTH, generator=torch.Generator().manual_seed(1)) * 3 + 2


def randomise(*modules: nn.Module) -> None:
    with torch.no_grad():
        for module in modules:
            generator = torch.Generator().manual_seed(7)
            for parameter in module.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))


@pytest.mark.parametrize(("gain", "offset"), [(True, True), (True, False), (False, True), (False, False)])
def test_layer_norm_equals_torch(gain: bool, offset: bool) -> None:
    ours, theirs = LayerNormConfig(gain=gain, offset=offset, epsilon=1e-3).build(WIDTH), nn.LayerNorm(WIDTH, 1e-3)
    assert len(list(ours.parameters())) == gain + offset
    randomise(theirs)
    with torch.no_grad():
        if gain:
            ours.weight.copy_(theirs.weight)
        else:
            theirs.weight.fill_(1)
        if offset:
            ours.bias.copy_(theirs.bias)
        else:
            theirs.bias.zero_()
    torch.testing.assert_close(ours(states()), theirs(states()))


@pytest.mark.parametrize("gain", [True, False])
def test_rms_norm_equals_torch(gain: bool) -> None:
    ours = RMSNormConfig(gain=gain, epsilon=1e-3).build(WIDTH)
    theirs = nn.RMSNorm(WIDTH, 1e-3, elementwise_affine=gain)
    randomise(ours, theirs)
    torch.testing.assert_close(ours(states()), theirs(states()))


@pytest.mark.parametrize("padded", [False, True])
def test_batch_norm_equals_torch_on_the_packed_tokens(padded: bool) -> None:
    ours, theirs = BatchNormConfig(momentum=0.3, epsilon=1e-3).build(WIDTH), nn.BatchNorm1d(WIDTH, 1e-3, 0.3)
    randomise(ours, theirs)
    keep = torch.ones(3, 5, dtype=torch.bool)
    if padded:
        keep[1, 2:], keep[2, 4:] = False, False
    for step in range(3):
        given = [(states() * (step + 1)).requires_grad_() for _ in range(2)]
        found = ours(given[0], keep if padded else None)[keep]
        expected = theirs(given[1][keep])
        torch.testing.assert_close(found, expected)
        weights = torch.arange(found.numel()).view_as(found) % 7.0
        (found * weights).sum().backward()
        (expected * weights).sum().backward()
        assert_close(given[0].grad, given[1].grad)
        torch.testing.assert_close(ours.running_mean, theirs.running_mean)
        torch.testing.assert_close(ours.running_var, theirs.running_var)
    assert_close(ours.weight.grad, theirs.weight.grad)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(states())[keep], theirs(states()[keep]))


def test_batch_norm_keeps_its_running_values_in_evaluation_and_accepts_one_token() -> None:
    norm = BatchNormConfig().build(WIDTH)
    result = norm(torch.full((1, 1, WIDTH), 5.0))
    assert not result.any()
    torch.testing.assert_close(norm.running_mean, torch.full((WIDTH,), 0.5))
    torch.testing.assert_close(norm.running_var, torch.full((WIDTH,), 0.9))
    before = {name: buffer.clone() for name, buffer in norm.named_buffers()}
    norm.eval()
    norm(states())
    assert all(torch.equal(before[name], buffer) for name, buffer in norm.named_buffers())
    norm.train()
    norm(states(), torch.zeros(3, 5, dtype=torch.bool))  # no real token: no NaN
    assert all(buffer.isfinite().all() for buffer in norm.buffers())


@pytest.mark.parametrize("kind", [LayerNormConfig(), RMSNormConfig(), BatchNormConfig()])
def test_residual_orders_and_ablation(kind: LayerNormConfig) -> None:
    """Compared with the written-out formulas; `residual: false` only leaves out the sum."""
    given = states()
    for connected in (True, False):
        for order in ("pre", "post"):
            block = Residual(WIDTH, order, kind, 0.0, connected).eval()  # type: ignore[arg-type]
            randomise(block)
            if order == "pre":
                expected = block.norm(given).sin() + given * connected
            else:
                expected = block.norm(given.sin() + given * connected)
            torch.testing.assert_close(block(given, torch.sin), expected)
