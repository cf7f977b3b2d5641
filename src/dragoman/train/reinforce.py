"""REINFORCE: a gradient for what was sampled, from the reward that followed (Williams 1992)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

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


def rewards_to_go(rewards: Tensor) -> Tensor:
    """Σ of the rewards (R, T) at a position and after it: what a decision there can still influence."""
    return rewards.flip(1).cumsum(1).flip(1)


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
    influences later states too. What a baseline learns is the mean of these rewards: how many tokens are left is known
    and no matter of the sample, so the product of both is a valid baseline.
    """
    rewards = rewards.masked_fill(~keep, 0.0)
    to_go = rewards_to_go(rewards)
    left = rewards_to_go(keep.to(rewards.dtype))
    mean_to_go = to_go / left.clamp_min(1)
    tokens = max(float(keep.sum()), 1.0)
    total = torch.zeros((), device=rewards.device)
    means: dict[str, list[Tensor]] = {}
    for calls in decisions.values():
        log_probability, entropy, baseline = (
            torch.cat([getattr(call, part) for call in calls], 1).to(rewards.dtype).masked_fill(~keep, 0.0)
            for part in ("log_probability", "entropy", "baseline")
        )
        first = calls[0]
        error = baseline_loss(mean_to_go, baseline)
        total = total + policy_loss(log_probability, to_go, baseline * left)
        total = total + first.baseline_weight * error - first.entropy_weight * entropy.sum()
        for name, value in (("entropy", entropy.sum()), ("reward", rewards.sum()), ("baseline_error", error)):
            means.setdefault(f"{first.name}_{name}", []).append(value.detach() / tokens)
    return Credit(total - total.detach(), {name: float(torch.stack(values).mean()) for name, values in means.items()})
