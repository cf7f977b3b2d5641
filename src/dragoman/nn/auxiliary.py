"""Auxiliary results that modules report to the training objective: penalties, random decisions and counts.

A module deep inside a model calls `collector()`. Outside of training it returns None, and nothing is computed.
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
    """A sum (scalar, differentiable), the count to divide it by, and its weight in the loss.

    additive: whether the totals of the parts of a batch add up to the total of the batch.
    """

    total: Tensor
    count: Tensor | float
    weight: float
    additive: bool = False


@dataclass(frozen=True)
class Decisions:
    """Random decisions sampled for (R, T) target positions, each tensor summed over the decisions at a position.

    log_probability: log-probability of the sample (nats), differentiable. entropy: entropy of the distribution (nats),
    differentiable. baseline: learned estimate of the mean reward from this position on, relative to other rows,
    differentiable. entropy_weight, baseline_weight: their weights in the loss. discount: γ per token. name: name in the
    log.
    """

    log_probability: Tensor
    entropy: Tensor
    baseline: Tensor
    entropy_weight: float
    baseline_weight: float
    discount: float = 1.0
    name: str = "decisions"


@dataclass
class Auxiliary:
    """The collected results. penalties and counts: by name. decisions: by module, one entry per call in temporal order.

    step: number of the current update, from 1, for modules whose behaviour changes during training.
    """

    step: int = 1
    penalties: dict[str, list[Penalty]] = field(default_factory=dict)
    decisions: dict[nn.Module, list[Decisions]] = field(default_factory=dict)
    counts: dict[str, Tensor] = field(default_factory=dict)

    def penalise(self, name: str, total: Tensor, count: Tensor | float, weight: float, additive: bool = False) -> None:
        """Add weight · total / count to the loss per target token.

        additive: add weight · total to the loss of the whole batch instead, like the summed cross-entropy. The parts of
        a batch then give the gradient of the whole, whatever their counts.
        """
        self.penalties.setdefault(name, []).append(Penalty(total, count, weight, additive))

    def decide(self, module: nn.Module, decisions: Decisions) -> None:
        """Report what `module` sampled; calls must come in the order of positions."""
        self.decisions.setdefault(module, []).append(decisions)

    def count(self, name: str, counts: Tensor) -> None:
        """Add to a vector of counts for the log, such as the number of tokens per expert.

        Modules may use one name with vectors of different lengths; shorter ones are padded with zeros.
        """
        counts = counts.detach()
        before = self.counts.get(name, counts.new_zeros(0))
        missing = len(before) - len(counts)
        self.counts[name] = functional.pad(before, (0, max(0, -missing))) + functional.pad(counts, (0, max(0, missing)))

    def absorb(self, calls: Sequence["Auxiliary"]) -> None:
        """Merge the results of consecutive calls on parts of the same text.

        The penalty of a module becomes one mean over all parts, as if they had been processed at once.
        """
        for name in dict.fromkeys(name for call in calls for name in call.penalties):
            reported = [call.penalties[name] for call in calls if name in call.penalties]
            for parts in zip(*reported, strict=True):  # one module's, or one layer's
                total = torch.stack([part.total for part in parts]).sum()
                count = sum((part.count for part in parts), 0.0)
                self.penalties.setdefault(name, []).append(replace(parts[0], total=total, count=count))
        for call in calls:
            for module, decisions in call.decisions.items():
                self.decisions.setdefault(module, []).extend(decisions)
            for name, counts in call.counts.items():
                self.count(name, counts)

    def penalty(self, tokens: int) -> tuple[Tensor | float, dict[str, float]]:
        """Return the term to add to the summed loss of `tokens` target tokens, differentiable, and means by name."""
        total: Tensor | float = 0.0
        means = {}
        for name, parts in self.penalties.items():
            values = [part.total / max(float(part.count), 1.0) for part in parts]
            for part, value in zip(parts, values, strict=True):
                total = total + part.weight * (part.total if part.additive else value * tokens)
            means[name] = float(torch.stack([value.detach() for value in values]).mean())
        return total, means


_collector: ContextVar[Auxiliary | None] = ContextVar("auxiliary collector", default=None)


@contextmanager
def collecting(step: int = 1) -> Iterator[Auxiliary]:
    """Collect what modules report within this context; step: as in `Auxiliary`."""
    auxiliary = Auxiliary(step)
    token = _collector.set(auxiliary)
    try:
        yield auxiliary
    finally:
        _collector.reset(token)


def collector() -> Auxiliary | None:
    """Return the active collector, or None."""
    return _collector.get()
