"""REINFORCE: a gradient for what was sampled, from the reward that followed (Williams 1992)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.auxiliary import Decisions


def policy_loss(log_probability: Tensor, reward: Tensor, baseline: Tensor | float = 0.0) -> Tensor:
    """−Σ (G − b) · log π of what was sampled, any shape → scalar.

    Where b does not depend on the sample, the gradient's expectation is that of −E[G]. None flows through G and b.
    """
    advantage = (reward - baseline).detach()
    return -(advantage * log_probability).sum()


def baseline_loss(reward: Tensor, baseline: Tensor) -> Tensor:
    """Σ (b − G)², any shape → scalar; its gradient is the baseline's alone."""
    return (baseline - reward.detach()).square().sum()


def rewards_to_go(rewards: Tensor, discount: float = 1.0) -> Tensor:
    """Σ_{t' ≥ t} γ^(t' − t) · r_t' of rewards (R, T): what a decision at t can still influence."""
    to_go, reach = rewards, 1  # Σ over t ≤ t' < t + reach
    while reach < rewards.size(1) and discount:
        further = functional.pad(to_go[:, reach:], (0, reach))
        to_go, reach = to_go + discount**reach * further, 2 * reach
    return to_go


@dataclass(frozen=True)
class Credit:
    """total: scalar, to be added to the summed loss for its gradient only: its value is 0.

    means: a token, by name, for the log.
    """

    total: Tensor
    means: Mapping[str, float]


def credit(decisions: Mapping[nn.Module, Sequence[Decisions]], rewards: Tensor, keep: Tensor) -> Credit:
    """The loss of decisions made inside a model while it read (R, T) target positions.

    rewards: (R, T) of at least float32, how good the prediction at each position was; keep: (R, T) bool, False at
    padding, which counts for nothing. A decision is credited with the rewards from its position on, because it
    influences later states too. Rewards count from the mean reward of a token in the batch's other rows, which no
    decision of this row influences (unless batch normalisation joins them): so advantages are small from the first
    step on, however large the vocabulary. What a baseline learns is the mean of the rewards from its position on: how
    many tokens are left is no matter of the sample, so the product of both is a valid baseline.
    """
    real = keep.to(rewards.dtype)
    rewards = rewards.masked_fill(~keep, 0.0)
    mean_reward = float(rewards.sum() / real.sum().clamp_min(1))
    rewards = (rewards - _mean_of_others(rewards, real)) * real
    tokens = max(float(real.sum()), 1.0)
    total = torch.zeros((), device=rewards.device)
    means: dict[str, list[float]] = {}
    for calls in decisions.values():
        log_probability, entropy, baseline = (
            torch.cat([getattr(call, part) for call in calls], 1).to(rewards.dtype).masked_fill(~keep, 0.0)
            for part in ("log_probability", "entropy", "baseline")
        )
        first = calls[0]
        to_go, left = rewards_to_go(rewards, first.discount), rewards_to_go(real, first.discount)
        mean_to_go = to_go / left.clamp_min(1)
        error = baseline_loss(mean_to_go, baseline)
        total = total + policy_loss(log_probability, to_go, baseline * left)
        total = total + first.baseline_weight * error - first.entropy_weight * entropy.sum()
        means[f"{first.name}_reward"] = [mean_reward]
        means.setdefault(f"{first.name}_entropy", []).append(float(entropy.detach().sum()) / tokens)
        means.setdefault(f"{first.name}_baseline_error", []).append(float(error.detach()) / tokens)
    return Credit(total - total.detach(), {name: sum(values) / len(values) for name, values in means.items()})


def _mean_of_others(rewards: Tensor, real: Tensor) -> Tensor:
    """(R, 1): the mean over the real tokens of all other rows, 0 where there are none."""
    sums, counts = rewards.sum(1, keepdim=True), real.sum(1, keepdim=True)
    return (sums.sum() - sums) / (counts.sum() - counts).clamp_min(1)
