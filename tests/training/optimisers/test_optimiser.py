"""Adam against torch's plain one, its state as tensors, and the moving average of parameters."""

import pytest
import torch
from closeness import assert_close
from torch import nn

from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.average import ParameterAverage
from dragoman.training.run.snapshot import optimiser_tensors, restore_optimiser


def problem() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def train(model: nn.Module, optimiser: torch.optim.Optimizer, first: int, last: int) -> None:
    """Run steps first … last−1, whose rates and data depend only on the step."""
    for step in range(first, last):
        generator = torch.Generator().manual_seed(step)
        optimiser.param_groups[0]["lr"] = 0.01 * (step + 1)
        optimiser.zero_grad()
        model(torch.randn(4, 6, generator=generator)).square().sum().backward()
        optimiser.step()


def close(one: nn.Module, other: nn.Module) -> None:
    for left, right in zip(one.parameters(), other.parameters(), strict=True):
        assert_close(left, right)


def test_equals_torchs_adam_with_the_papers_constants() -> None:
    ours, theirs, start = problem(), problem(), problem()
    train(ours, AdamConfig().build(ours, torch.float32), 0, 20)
    train(theirs, torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=False), 0, 20)
    close(ours, theirs)
    assert any(not torch.equal(one, two) for one, two in zip(ours.parameters(), start.parameters(), strict=True))


def test_weight_decay_is_decoupled() -> None:
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    optimiser = AdamConfig(weight_decay=0.1).build(model, torch.float32)
    optimiser.param_groups[0]["lr"] = 0.5
    (model.weight.sum() * 0 + model.bias.sum() * 0).backward()
    optimiser.step()
    torch.testing.assert_close(model.weight, before * (1 - 0.5 * 0.1))


def test_the_state_survives_a_round_trip() -> None:
    whole, first, second = problem(), problem(), problem()
    train(whole, AdamConfig().build(whole, torch.float32), 0, 12)
    optimiser = AdamConfig().build(first, torch.float32)
    train(first, optimiser, 0, 5)
    stored = {name: value.clone() for name, value in optimiser_tensors(optimiser, first).items()}
    second.load_state_dict(first.state_dict())
    restored = AdamConfig().build(second, torch.float32)
    restore_optimiser(restored, second, stored)
    train(second, restored, 5, 12)
    assert all(torch.equal(one, two) for one, two in zip(whole.parameters(), second.parameters(), strict=True))


def test_tied_parameters_have_one_state() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    optimiser = AdamConfig().build(model, torch.float32)
    train_once = model(torch.randn(2, 4)).sum()
    train_once.backward()
    optimiser.step()
    assert {name.partition("/")[0] for name in optimiser_tensors(optimiser, model)} == {"0.weight", "0.bias", "1.bias"}


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_the_moving_average_equals_its_formula(decay: float) -> None:
    model = nn.Linear(3, 2)
    average = ParameterAverage(model, decay)
    expected = model.weight.detach().double()
    for step in range(1, 30):
        with torch.no_grad():
            model.weight.add_(torch.full((2, 3), float(step)))
        average.update(step)
        shorter = min(decay, (1 + step) / (10 + step))
        expected = shorter * expected + (1 - shorter) * model.weight.detach().double()
    assert_close(average.shadow["weight"], expected)
    kept = model.weight.detach().clone()
    with average.swapped_in():
        assert torch.equal(model.weight, average.shadow["weight"])
    assert torch.equal(model.weight, kept)
