"""Muon against torch's own, its orthogonal updates against singular value decompositions."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from dragoman.training.machine.threads import Threads
from dragoman.training.optimisers import muon
from dragoman.training.optimisers.muon import Muon, MuonConfig, orthogonal
from dragoman.training.run.snapshot import optimiser_tensors, restore_optimiser


class Problem(nn.Module):
    """A model with a table, two linear layers of the same shape and one of another, biases and a norm."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table = nn.Embedding(7, 8)
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 20))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layers(self.table(tokens))  # type: ignore[no-any-return]

    @property
    def matrices(self) -> list[nn.Parameter]:
        return [module.weight for module in self.modules() if isinstance(module, nn.Linear)]

    @property
    def others(self) -> list[nn.Parameter]:
        return [each for each in self.parameters() if not any(each is matrix for matrix in self.matrices)]


def train(model: nn.Module, optimisers: list[torch.optim.Optimizer], first: int, last: int) -> None:
    """Run steps first … last−1, whose rates and data depend only on the step."""
    for step in range(first, last):
        tokens = torch.randint(7, (4, 5), generator=torch.Generator().manual_seed(step))
        for optimiser in optimisers:
            optimiser.param_groups[0]["lr"] = 0.01 * (step + 1)
            optimiser.zero_grad()
        model(tokens).square().sum().backward()
        for optimiser in optimisers:
            optimiser.step()


@given(st.integers(1, 3), st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**31), st.floats(1e-6, 1e6))
def test_singular_vectors_stay_and_singular_values_approach_one(
    count: int, rows: int, columns: int, seed: int, scale: float
) -> None:
    matrices = torch.randn(count, rows, columns, generator=torch.Generator().manual_seed(seed)) * scale
    u, before, v = torch.linalg.svd(matrices.double(), full_matrices=False)
    turned = u.mT @ orthogonal(matrices).double() @ v.mT
    after = turned.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(turned, torch.diag_embed(after), rtol=0, atol=1e-3)
    assert after.max() < 1.28
    assert after.min() > -1e-3
    counted = before / before.pow(4).sum(-1, keepdim=True).pow(0.25) > 0.0102
    assert after[counted].min() > 0.72


def test_every_polynomial_is_optimal_on_the_range_of_the_previous_one() -> None:
    """By Chebyshev's theorem: the error has its maximum, with alternating signs, at one more point than factors."""
    low, high = 0.01, 1.0
    for linear, cubic, quintic in muon._QUINTICS:
        values = np.linspace(low, high, 200_001)
        errors = linear * values + cubic * values**3 + quintic * values**5 - 1
        turns = errors[[0, *(np.flatnonzero(np.diff(np.sign(np.diff(errors)))) + 1), -1]]
        assert len(turns) == 4
        assert list(np.sign(turns)) in ([-1, 1, -1, 1], [1, -1, 1, -1])
        assert np.abs(turns) == pytest.approx(np.abs(turns).max(), abs=2e-3)
        low, high = 1 - np.abs(turns).max(), 1 + np.abs(turns).max()
    assert (low, high) == pytest.approx((0.73, 1.27), abs=0.01)


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
def test_bfloat16_is_close_to_float32(spread: float) -> None:
    """Gradients have a few large singular values and many small ones."""
    generator = torch.Generator().manual_seed(1)
    u, v = (torch.linalg.qr(torch.randn(4, size, 32, generator=generator)).Q for size in (32, 64))
    matrices = u @ torch.diag_embed(torch.logspace(0, np.log10(spread), 32).expand(4, 32)) @ v.mT
    exact, rounded = orthogonal(matrices), orthogonal(matrices, torch.bfloat16).float()
    assert torch.linalg.svdvals(rounded).max() < 1.35
    assert torch.nn.functional.cosine_similarity(exact.flatten(1), rounded.flatten(1)).min() > 0.99


def test_zero_gradients_change_nothing() -> None:
    assert torch.equal(orthogonal(torch.zeros(1, 3, 4)), torch.zeros(1, 3, 4))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_equals_torchs_muon_and_adam(decay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both use enough steps of one polynomial to make updates exactly orthogonal.

    Torch's implementation rounds to bfloat16; here it keeps float64, so that the two can be compared.
    """
    polynomial, steps = (1.875, -1.25, 0.375), 40
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.double)
    monkeypatch.setattr(muon, "_QUINTICS", (polynomial,) * steps)
    ours, theirs, start = Problem().double(), Problem().double(), Problem().double()
    train(ours, [MuonConfig(weight_decay=decay).build(ours, torch.float64)], 0, 5)
    settings: dict[str, Any] = {"adjust_lr_fn": "match_rms_adamw", "ns_coefficients": polynomial, "ns_steps": steps}
    matrices = torch.optim.Muon(theirs.matrices, weight_decay=decay, **settings)
    adam = torch.optim.AdamW(theirs.others, betas=(0.9, 0.98), eps=1e-9, weight_decay=decay)
    train(theirs, [matrices, adam], 0, 5)
    for mine, other, first in zip(ours.parameters(), theirs.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
        assert (mine - first).abs().max() > 0.01


def test_only_linear_layers_have_a_momentum_and_all_others_have_adams_state() -> None:
    model = Problem()
    optimiser = MuonConfig().build(model, torch.float32)
    train(model, [optimiser], 0, 1)
    states: dict[str, set[str]] = {}
    for name in optimiser_tensors(optimiser, model):
        parameter, _, state = name.rpartition("/")
        states.setdefault(parameter, set()).add(state)
    linear = {f"layers.{index}.weight" for index in (0, 2, 4)}
    assert {name for name, kept in states.items() if kept == {"momentum"}} == linear
    assert {name for name, kept in states.items() if kept == {"step", "exp_avg", "exp_avg_sq"}} == {
        name for name, _ in model.named_parameters()
    } - linear


def test_resumes_from_its_stored_state() -> None:
    whole, first, second = Problem(), Problem(), Problem()
    train(whole, [MuonConfig().build(whole, torch.float32)], 0, 6)
    optimiser = MuonConfig().build(first, torch.float32)
    train(first, [optimiser], 0, 3)
    stored = {name: value.clone() for name, value in optimiser_tensors(optimiser, first).items()}
    second.load_state_dict(first.state_dict())
    restored = MuonConfig().build(second, torch.float32)
    restore_optimiser(restored, second, stored)
    train(second, [restored], 3, 6)
    assert all(torch.equal(one, two) for one, two in zip(whole.parameters(), second.parameters(), strict=True))


def test_frozen_tied_and_unused_matrices() -> None:
    model = Problem()
    model.layers[2].weight = model.layers[0].weight
    model.layers[4].weight.requires_grad_(False)
    optimiser = MuonConfig().build(model, torch.float32)
    assert isinstance(optimiser, Muon)
    assert [id(matrix) for matrix in optimiser.matrices] == [id(model.layers[0].weight)]
    before = model.layers[0].weight.detach().clone()
    optimiser.param_groups[0]["lr"] = 0.1
    model.table(torch.tensor([1])).sum().backward()
    optimiser.step()
    assert torch.equal(model.layers[0].weight, before)
    train(model, [optimiser], 0, 1)
    assert not torch.equal(model.layers[0].weight, before)
    optimiser.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters() if parameter.requires_grad)


def test_updates_are_as_large_as_adams() -> None:
    """Learning rates of Adam apply: root mean squares are about 0.2 to 0.4 of the rate (Liu et al. 2025)."""
    model, start = Problem(), Problem()
    train(model, [MuonConfig().build(model, torch.float32)], 0, 1)
    for moved, before in zip(model.matrices, start.matrices, strict=True):
        assert 0.1 < (moved - before).square().mean().sqrt() / 0.01 < 0.4


def test_threads_share_the_matrices_and_change_nothing() -> None:
    one, two = Problem(), Problem()
    train(one, [MuonConfig(weight_decay=0.1).build(one, torch.float32)], 0, 4)
    threads = Threads(2, 2)
    try:
        train(two, [MuonConfig(weight_decay=0.1).build(two, torch.float32, threads)], 0, 4)
    finally:
        threads.close()
    for alone, shared in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(alone, shared, rtol=1e-6, atol=1e-7)
