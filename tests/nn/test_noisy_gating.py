"""Noisy gating and its losses (Shazeer et al. 2017) against numpy, against sampled noise, and by finite differences."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from closeness import assert_close

from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.mixture import ExpertsConfig, Mixture

WIDTH, EXPERTS = 5, 6
Floats = npt.NDArray[np.float64]


def mixture(active: int = 2, **settings: Any) -> Mixture:
    """Return a mixture with random gates, in float64 and in training."""
    config = ExpertsConfig(
        count=EXPERTS, active=active, **{"capacity": None, "balance": 0, "noise": {"load": 0.5}, **settings}
    )
    built = config.build(WIDTH, lambda: FeedForward(WIDTH, 7, "relu", 0.0)).double()
    with torch.no_grad():
        for gate in (built.router, built.noise):
            if gate is not None:
                gate.normal_()
    return built


def applied(module: Mixture, states: torch.Tensor, mask: torch.Tensor | None = None) -> tuple[torch.Tensor, Auxiliary]:
    """Apply the mixture with the noise of seed 3."""
    torch.manual_seed(3)
    with collecting() as auxiliary:
        return module(states, mask), auxiliary


def distribution(module: Mixture, states: torch.Tensor) -> tuple[Floats, Floats, Floats]:
    """Return means, standard deviations and, with the noise of seed 3, H(x) (N, E) of equation 4."""
    assert module.noise is not None
    x, router, noise = (each.detach().numpy().reshape(-1, WIDTH) for each in (states, module.router, module.noise))
    means, deviations = x @ router.T, np.log1p(np.exp(x @ noise.T))
    torch.manual_seed(3)
    return means, deviations, means + torch.randn(means.shape, dtype=torch.float64).numpy() * deviations


def chosen_gates(scores: Floats, active: int) -> Floats:
    """Return G (N, E) by sorting each row: the softmax of the scores, with −∞ for all but the `active` highest."""
    kept = np.full_like(scores, -np.inf)
    for row, values in enumerate(scores):
        for expert in sorted(range(EXPERTS), key=lambda each: -values[each])[:active]:
            kept[row, expert] = values[expert]
    powers = np.exp(kept)
    return powers / powers.sum(1, keepdims=True)


def variation(values: Floats) -> float:
    return float(np.std(values) / np.mean(values)) ** 2


@pytest.mark.parametrize(("active", "sigmoid"), [(2, False), (3, True), (EXPERTS, False)])
def test_the_result_and_the_importance_are_those_of_all_experts(active: int, sigmoid: bool) -> None:
    torch.manual_seed(1)
    module, states = mixture(active, importance=0.25, sigmoid=sigmoid), torch.randn(4, 9, WIDTH, dtype=torch.float64)
    found, auxiliary = applied(module, states)
    gates = chosen_gates(distribution(module, states)[2], active)
    results = torch.stack([expert(states.flatten(0, 1)) for expert in module.experts], 1)
    expected = (torch.from_numpy(gates)[:, :, None] * results).sum(1).view_as(states)
    torch.testing.assert_close(found, expected.sigmoid() if sigmoid else expected)
    term, means = auxiliary.penalty(1)
    assert means["importance"] == pytest.approx(variation(gates.sum(0)))
    assert ("load" in means) == (active < EXPERTS)  # otherwise, every expert processes every token
    assert float(torch.as_tensor(term).detach()) == pytest.approx(
        0.25 * means["importance"] + 0.5 * means.get("load", 0)
    )
    assert auxiliary.counts["experts"].tolist() == (gates > 0).sum(0).tolist()


@pytest.mark.parametrize("active", [1, 2, 4])
def test_the_load_is_that_of_sampled_noise(active: int) -> None:
    """The noise of one expert at a time is drawn 20,000 times, and the noise of the others is kept (appendix A)."""
    torch.manual_seed(2)
    module, states = mixture(active), torch.randn(1, 12, WIDTH, dtype=torch.float64)
    means, deviations, scores = distribution(module, states)
    generator, draws = np.random.default_rng(1), 20_000
    sampled = np.zeros_like(scores)
    for row in range(len(scores)):
        for expert in range(EXPERTS):
            drawn = np.repeat(scores[row : row + 1], draws, 0)
            drawn[:, expert] = means[row, expert] + generator.standard_normal(draws) * deviations[row, expert]
            rank = (drawn > drawn[:, expert : expert + 1]).sum(1)
            sampled[row, expert] = (rank < active).mean()
    torch.manual_seed(3)
    routing = module._route(states.flatten(0, 1), None)
    np.testing.assert_allclose(routing.scores.detach().numpy(), scores)
    np.testing.assert_allclose(routing.probabilities(active).detach().numpy(), sampled, atol=0.02)
    found = applied(module, states)[1].penalty(1)[1]["load"]
    assert found == pytest.approx(variation(sampled.sum(0)), abs=0.01)


def test_gradients_reach_both_gates_and_equal_finite_differences() -> None:
    """Also that of the states, through the gates, the importance and the load."""
    torch.manual_seed(4)
    module = mixture(importance=0.3, sigmoid=True)
    assert module.noise is not None
    states = torch.randn(1, 7, WIDTH, dtype=torch.float64, requires_grad=True)
    router, noise = (each.detach().clone().requires_grad_() for each in (module.router, module.noise))

    def outputs(states: torch.Tensor, router: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(3)
        with collecting() as auxiliary:
            found = torch.func.functional_call(module, {"router": router, "noise": noise}, (states,))
        return found, *(parts[0].total for name, parts in auxiliary.penalties.items() if name != "balance")

    assert torch.autograd.gradcheck(outputs, (states, router, noise))
    for output in outputs(states, router, noise):
        for gradient in torch.autograd.grad(output.sum(), (router, noise), retain_graph=True):
            assert gradient.abs().sum() > 0


def test_padding_has_no_noise_no_importance_and_no_load() -> None:
    """The same tokens without padding have the same noise, results and penalties."""
    torch.manual_seed(5)
    module, states = mixture(importance=0.1), torch.randn(2, 5, WIDTH, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [False, True, False, True, False]])
    (found, padded), (expected, real) = applied(module, states, mask), applied(module, states[mask])
    torch.testing.assert_close(found[mask], expected)
    assert padded.penalty(3)[1] == pytest.approx(real.penalty(3)[1])
    nothing = applied(module, states, torch.zeros(2, 5, dtype=torch.bool))[1].penalty(3)[1]
    assert nothing == {"balance": 0, "importance": 0, "load": 0}


def test_there_is_no_noise_in_evaluation() -> None:
    torch.manual_seed(6)
    noisy, states = mixture().eval(), torch.randn(3, 4, WIDTH, dtype=torch.float64)
    plain = mixture(noise=None).eval()
    plain.load_state_dict({name: value for name, value in noisy.state_dict().items() if name != "noise"})
    found, auxiliary = applied(noisy, states)
    assert torch.equal(found, applied(plain, states)[0])
    assert "load" not in auxiliary.penalties
    assert not torch.equal(found, applied(noisy.train(), states)[0])


def test_new_experts_have_equal_chances() -> None:
    """Both matrices are zero (appendix A), so that the variation of the loads is that of chance."""
    module = ExpertsConfig(count=4, active=2, noise={}, importance=0.1).build(  # type: ignore[arg-type]
        WIDTH, lambda: FeedForward(WIDTH, 7, "relu", 0.0)
    )
    _, auxiliary = applied(module, torch.randn(40, 50, WIDTH))
    assert auxiliary.counts["experts"].tolist() == pytest.approx([1000] * 4, rel=0.1)
    assert auxiliary.penalty(1)[1]["load"] < 0.01


def test_a_small_deviation_has_finite_gradients() -> None:
    """Where softplus(xW_n) is rounded to zero, in float32."""
    module = mixture().float()
    assert module.noise is not None
    with torch.no_grad():
        module.router.zero_()
        module.noise.fill_(-100)
    _, auxiliary = applied(module, torch.full((2, 3, WIDTH), 5.0))
    torch.as_tensor(auxiliary.penalty(1)[0]).backward()
    assert_close(module.noise.grad, torch.zeros_like(module.noise))
    assert module.router.grad is not None
    assert module.router.grad.isfinite().all()
