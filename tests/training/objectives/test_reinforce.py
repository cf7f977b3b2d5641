"""The functions of REINFORCE on a bandit whose expected reward is known in closed form."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from dragoman.nn.auxiliary import Decisions
from dragoman.training.objectives.reinforce import baseline_loss, credit, policy_loss, rewards_to_go

ROWS, LENGTH = 2, 2
# The reward of each of two actions at (row, position); the second position of the second row is ignored.
EARNED = torch.tensor([[[-3.0, -5.0], [-2.0, -4.5]], [[-4.0, -1.0], [0.0, 0.0]]], dtype=torch.float64)
KEEP = torch.tensor([[True, True], [True, False]])


def policy() -> Tensor:
    """Log-probabilities (R, T, 2) of both actions."""
    return torch.tensor([[[0.2, -0.1], [0.7, 0.1]], [[-0.5, 0.4], [0.3, 0.3]]], dtype=torch.float64).requires_grad_()


def estimates(discount: float, baseline: float = 0.0) -> tuple[Tensor, Tensor, float]:
    """Return the exact gradient of minus the expected reward, and the estimate's mean and variance over all samples."""
    logits = policy()
    probabilities = logits.softmax(-1)
    (exact,) = torch.autograd.grad(-(probabilities * EARNED * KEEP[..., None]).sum(), logits)
    found, chances = [], []
    module = nn.Identity()
    for choice in product(range(2), repeat=ROWS * LENGTH):
        action = torch.tensor(choice).view(ROWS, LENGTH, 1)
        logits = policy()
        log_probability = logits.log_softmax(-1).gather(2, action)[..., 0]
        guess = torch.full((ROWS, LENGTH), baseline, dtype=torch.float64, requires_grad=True)
        zero = torch.zeros_like(guess)
        calls = [  # one per token, as in a recurrent decoder
            Decisions(log_probability[:, t : t + 1], zero[:, :1], guess[:, t : t + 1], 0.0, 1.0, discount)
            for t in range(LENGTH)
        ]
        credited = credit({module: calls}, EARNED.gather(2, action)[..., 0], KEEP)
        assert float(credited.total.detach()) == 0
        found.append(torch.autograd.grad(credited.total, logits)[0])
        chances.append(float(log_probability.detach().exp().prod()))
    stacked, weight = torch.stack(found), torch.tensor(chances, dtype=torch.float64).view(-1, 1, 1, 1)
    mean = (weight * stacked).sum(0)
    return exact, mean, float((weight * (stacked - mean).square()).sum())


@pytest.mark.parametrize("discount", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("baseline", [0.0, -2.0])
def test_the_mean_estimate_is_the_gradient(discount: float, baseline: float) -> None:
    """No action affects later rewards here, so no discount causes a bias."""
    exact, mean, _ = estimates(discount, baseline)
    torch.testing.assert_close(mean, exact)
    assert bool((mean[1, 1] == 0).all()), "padding"


def test_less_of_the_future_means_less_noise() -> None:
    noise = [estimates(discount)[2] for discount in (1.0, 0.5, 0.0)]
    assert noise[0] > noise[1] > noise[2]


def test_the_mean_of_other_rows_lowers_the_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, less = estimates(1.0)
    monkeypatch.setattr(
        "dragoman.training.objectives.reinforce._mean_of_others", lambda rewards, real: torch.zeros(ROWS, 1)
    )
    exact, mean, more = estimates(1.0)
    torch.testing.assert_close(mean, exact)
    assert less < 0.6 * more


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
def test_rewards_to_go_are_discounted_sums(discount: float) -> None:
    rewards = torch.randn(3, 5, dtype=torch.float64)
    expected = torch.zeros(3, 5, dtype=torch.float64)
    for here in range(5):
        for later in range(here, 5):
            expected[:, here] += discount ** (later - here) * rewards[:, later]
    torch.testing.assert_close(rewards_to_go(rewards, discount), expected)


def test_losses_of_a_sampled_sequence() -> None:
    """With one reward per sequence: shapes (N,)."""
    log_probability = torch.tensor([-1.0, -2.0], requires_grad=True)
    reward, baseline = torch.tensor([0.5, 0.2]), torch.tensor([0.3, 0.3], requires_grad=True)
    policy_loss(log_probability, reward, baseline).backward()
    torch.testing.assert_close(log_probability.grad, torch.tensor([-0.2, 0.1]))
    assert baseline.grad is None
    baseline_loss(reward, baseline).backward()
    torch.testing.assert_close(baseline.grad, torch.tensor([-0.4, 0.2]))


def test_a_baseline_learns_the_mean_reward_to_go_of_real_tokens() -> None:
    guess = torch.zeros(1, 3, requires_grad=True)
    zero = torch.zeros(1, 3)
    rewards, keep = torch.tensor([[-1.0, -3.0, -100.0]]), torch.tensor([[True, True, False]])
    optimiser = torch.optim.SGD([guess], lr=0.25)
    for _ in range(60):
        optimiser.zero_grad()
        credited = credit({nn.Identity(): [Decisions(zero, zero, guess, 0.0, 1.0, name="choice")]}, rewards, keep)
        credited.total.backward()
        optimiser.step()
    torch.testing.assert_close(guess.detach(), torch.tensor([[-2.0, -3.0, 0.0]]), rtol=0, atol=1e-4)
    assert credited.means == pytest.approx(
        {"choice_reward": -2.0, "choice_entropy": 0.0, "choice_baseline_error": 0.0}, abs=1e-4
    )
