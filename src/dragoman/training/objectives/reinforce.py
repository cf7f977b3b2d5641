"""REINFORCE: gradients of sampled decisions from the rewards that follow them (Williams 1992)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.auxiliary import Decisions


def policy_loss(log_probability: Tensor, reward: Tensor, baseline: Tensor | float = 0.0) -> Tensor:
    """Return −Σ (G − b) · log π of the samples, any shape → scalar.

    If b does not depend on the sample, the expected gradient is that of −E[G]. No gradient flows through G and b.
    """
    advantage = (reward - baseline).detach()
    return -(advantage * log_probability).sum()


def baseline_loss(reward: Tensor, baseline: Tensor) -> Tensor:
    """Return Σ (b − G)², any shape → scalar; only the baseline gets a gradient."""
    return (baseline - reward.detach()).square().sum()


def rewards_to_go(rewards: Tensor, discount: float = 1.0) -> Tensor:
    """Return Σ_{t' ≥ t} γ^(t' − t) · r_t' of rewards (R, T): the rewards that a decision at t can influence."""
    to_go, reach = rewards, 1  # Σ over t ≤ t' < t + reach
    while reach < rewards.size(1) and discount:
        further = functional.pad(to_go[:, reach:], (0, reach))
        to_go, reach = to_go + discount**reach * further, 2 * reach
    return to_go


@dataclass(frozen=True)
class Credit:
    """The result of `credit`.

    total: a scalar of value 0 that adds the gradient to the summed loss. means: per-token means by name, for the log.
    """

    total: Tensor
    means: Mapping[str, float]


def credit(decisions: Mapping[nn.Module, Sequence[Decisions]], rewards: Tensor, keep: Tensor) -> Credit:
    """Compute the loss of decisions that modules sampled while they read (R, T) target positions.

    rewards: (R, T) of at least float32, the reward of the prediction at each position; keep: (R, T) bool, False at
    padding, which is ignored. A decision is credited with all rewards from its position on, because it influences later
    states as well. Rewards are centred on the mean reward per token of the batch's other rows, which no decision of
    this row influences (without batch normalisation). Advantages are therefore small from the first step on, whatever
    the size of the vocabulary. A baseline learns the mean of the rewards from its position on. The number of remaining
    tokens does not depend on the sample, so the product of both is a valid baseline.
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
    """Return, per row, the mean over the tokens of all other rows that are not padding (R, 1); 0 if there are none."""
    sums, counts = rewards.sum(1, keepdim=True), real.sum(1, keepdim=True)
    return (sums.sum() - sums) / (counts.sum() - counts).clamp_min(1)
