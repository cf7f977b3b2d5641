"""Auxiliary results that modules report to the training objective: penalties, random decisions and counts.

A module reports its results to the collector that `collector()` returns. Outside of training, `collector()` returns
None, and modules skip these computations.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Penalty:
    """A penalty in the loss.

    total: differentiable scalar. count: divisor of the total. weight: weight in the loss. additive: whether the total
    of a batch is the sum of the totals of its parts.
    """

    total: Tensor
    count: Tensor | float
    weight: float
    additive: bool = False


@dataclass(frozen=True)
class Decisions:
    """Random decisions sampled at (R, T) target positions. Each tensor is summed over the decisions at a position.

    log_probability: log-probability of the sample (nats), differentiable. entropy: entropy of the distribution (nats),
    differentiable. baseline: learned estimate of the mean reward from this position onwards, relative to other rows,
    differentiable. entropy_weight, baseline_weight: weights of the entropy and baseline terms in the loss. discount: γ
    per token. name: name in the log. has_expected_baseline: whether rewards are compared with those of a pass in which
    decisions are replaced by their expected values.
    """

    log_probability: Tensor
    entropy: Tensor
    baseline: Tensor
    entropy_weight: float
    baseline_weight: float
    discount: float = 1.0
    name: str = "decisions"
    has_expected_baseline: bool = False


@dataclass
class Auxiliary:
    """Results collected from the modules of a model.

    step: number of the current update, starting at 1, for modules whose behaviour changes during training. penalties
    and counts: by name. decisions: by module, with one entry per call in temporal order.
    """

    step: int = 1
    penalties: dict[str, list[Penalty]] = field(default_factory=dict)
    decisions: dict[nn.Module, list[Decisions]] = field(default_factory=dict)
    counts: dict[str, Tensor] = field(default_factory=dict)

    def penalise(self, name: str, total: Tensor, count: Tensor | float, weight: float, additive: bool = False) -> None:
        """Add weight · total / count to the loss per target token.

        additive: add weight · total to the summed loss of the batch instead, as for cross-entropy. The gradients of the
        parts of a batch then add up to the gradient of the batch, regardless of their counts.
        """
        self.penalties.setdefault(name, []).append(Penalty(total, count, weight, additive))

    def decide(self, module: nn.Module, decisions: Decisions) -> None:
        """Report the decisions sampled by `module`. Calls must follow the order of positions."""
        self.decisions.setdefault(module, []).append(decisions)

    def count(self, name: str, counts: Tensor) -> None:
        """Add `counts` to the logged vector `name`, such as the number of tokens per expert.

        Modules may report vectors of different lengths under the same name. Shorter vectors are padded with zeros.
        """
        counts = counts.detach()
        total = self.counts.get(name, counts.new_zeros(0))
        missing = len(total) - len(counts)
        self.counts[name] = functional.pad(total, (0, max(0, -missing))) + functional.pad(counts, (0, max(0, missing)))

    def absorb(self, calls: Sequence["Auxiliary"]) -> None:
        """Merge the results of consecutive calls on parts of the same text.

        The penalty of a module becomes a single mean over all parts, as if they had been processed in one call.
        """
        for name in dict.fromkeys(name for call in calls for name in call.penalties):
            reported = [call.penalties[name] for call in calls if name in call.penalties]
            for parts in zip(*reported, strict=True):  # the penalties of one module
                total = torch.stack([part.total for part in parts]).sum()
                count = sum((part.count for part in parts), 0.0)
                self.penalties.setdefault(name, []).append(replace(parts[0], total=total, count=count))
        for call in calls:
            for module, decisions in call.decisions.items():
                self.decisions.setdefault(module, []).extend(decisions)
            for name, counts in call.counts.items():
                self.count(name, counts)

    def penalty(self, tokens: int) -> tuple[Tensor | float, dict[str, float]]:
        """Return the penalty term for the summed loss of `tokens` target tokens, and the mean of each penalty by name.

        The term is differentiable. The mean is over the parts, or, for additive penalties, over all that they count.
        """
        total: Tensor | float = 0.0
        means = {}
        for name, parts in self.penalties.items():
            values = [part.total / max(float(part.count), 1.0) for part in parts]
            for part, value in zip(parts, values, strict=True):
                total = total + part.weight * (part.total if part.additive else value * tokens)
            if all(part.additive for part in parts):
                total_count = sum(float(part.count) for part in parts)
                means[name] = sum(float(part.total.detach()) for part in parts) / max(total_count, 1.0)
            else:
                means[name] = float(torch.stack([value.detach() for value in values]).mean())
        return total, means


_collector: ContextVar[Auxiliary | None] = ContextVar("auxiliary collector", default=None)
_expected_values: ContextVar[bool] = ContextVar("expected values", default=False)


@contextmanager
def collecting(step: int = 1) -> Iterator[Auxiliary]:
    """Collect the results that modules report within this context. step: see `Auxiliary`."""
    auxiliary = Auxiliary(step)
    token = _collector.set(auxiliary)
    try:
        yield auxiliary
    finally:
        _collector.reset(token)


def collector() -> Auxiliary | None:
    """Return the active collector, or None if there is none."""
    return _collector.get()


@contextmanager
def expected_values() -> Iterator[None]:
    """In this context, modules replace random decisions by their expected values, and report nothing."""
    collector_token, token = _collector.set(None), _expected_values.set(True)
    try:
        yield
    finally:
        _expected_values.reset(token)
        _collector.reset(collector_token)


def uses_expected_values() -> bool:
    """Return whether random decisions are to be replaced by their expected values."""
    return _expected_values.get()
