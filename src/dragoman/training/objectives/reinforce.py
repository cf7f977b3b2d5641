"""REINFORCE: gradients of sampled decisions from the rewards that follow them (Williams 1992)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.auxiliary import Decisions


def policy_loss(log_probability: Tensor, reward: Tensor, baseline: Tensor | float = 0.0) -> Tensor:
    """Return −Σ (G − b) · log π of the samples, any shape → scalar.

    If b does not depend on the sample, the expected gradient is that of −E[G]. No gradient flows through G or b.
    """
    advantage = (reward - baseline).detach()
    return -(advantage * log_probability).sum()


def baseline_loss(reward: Tensor, baseline: Tensor) -> Tensor:
    """Return Σ (b − G)², any shape → scalar. Only the baseline b receives a gradient."""
    return (baseline - reward.detach()).square().sum()


def rewards_to_go(rewards: Tensor, discount: float = 1.0) -> Tensor:
    """Return Σ_{t' ≥ t} γ^(t' − t) · r_t' for rewards (R, T): the sum of rewards that a decision at t influences."""
    to_go, span = rewards, 1  # sum over t ≤ t' < t + span
    while span < rewards.size(1) and discount:
        later = functional.pad(to_go[:, span:], (0, span))
        to_go, span = to_go + discount**span * later, 2 * span
    return to_go


@dataclass(frozen=True)
class Credit:
    """The result of `credit`.

    total: a scalar with value 0 that adds its gradient to the summed loss. means: per-token means by name, for the log.
    """

    total: Tensor
    means: Mapping[str, float]


def credit(decisions: Mapping[nn.Module, Sequence[Decisions]], rewards: Tensor, keep: Tensor) -> Credit:
    """Compute the loss of the decisions that modules sampled at (R, T) target positions.

    rewards: (R, T), at least float32, the reward of the prediction at each position. keep: (R, T) bool, False at
    padding, which is ignored.

    A decision is credited with the rewards at its own and all later positions, because it also influences later states.
    Rewards are centred on the mean reward per token of the batch's other rows, which (without batch normalisation) no
    decision of this row influences. Advantages are therefore small from the first step, for any vocabulary size. The
    baseline at a position is trained to predict the mean of the remaining rewards. Its product with the number of
    remaining tokens is a valid baseline, because that number does not depend on the sample.
    """
    weights = keep.to(rewards.dtype)
    rewards = rewards.masked_fill(~keep, 0.0)
    mean_reward = float(rewards.sum() / weights.sum().clamp_min(1))
    rewards = (rewards - _mean_of_others(rewards, weights)) * weights
    tokens = max(float(weights.sum()), 1.0)
    total = torch.zeros((), device=rewards.device)
    means: dict[str, list[float]] = {}
    for calls in decisions.values():
        log_probability, entropy, baseline = (
            torch.cat([getattr(call, part) for call in calls], 1).to(rewards.dtype).masked_fill(~keep, 0.0)
            for part in ("log_probability", "entropy", "baseline")
        )
        first = calls[0]
        to_go, remaining = rewards_to_go(rewards, first.discount), rewards_to_go(weights, first.discount)
        mean_to_go = to_go / remaining.clamp_min(1)
        error = baseline_loss(mean_to_go, baseline)
        total = total + policy_loss(log_probability, to_go, baseline * remaining)
        total = total + first.baseline_weight * error - first.entropy_weight * entropy.sum()
        means[f"{first.name}_reward"] = [mean_reward]
        means.setdefault(f"{first.name}_entropy", []).append(float(entropy.detach().sum()) / tokens)
        means.setdefault(f"{first.name}_baseline_error", []).append(float(error.detach()) / tokens)
    return Credit(total - total.detach(), {name: sum(values) / len(values) for name, values in means.items()})


def _mean_of_others(rewards: Tensor, weights: Tensor) -> Tensor:
    """Return, for each row, the mean reward over the tokens of all other rows (R, 1); 0 if there are none.

    weights: (R, T), 0 at padding and 1 elsewhere.
    """
    sums, counts = rewards.sum(1, keepdim=True), weights.sum(1, keepdim=True)
    return (sums.sum() - sums) / (counts.sum() - counts).clamp_min(1)
