"""What modules tell the training objective beside the model's output: penalties, decisions, counts.

A module deep inside a model asks `collector()`; where nobody collects, as in translation, it computes nothing.
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

    additive: the totals of a batch's parts add up to that of the whole.
    """

    total: Tensor
    count: Tensor | float
    weight: float
    additive: bool = False


@dataclass(frozen=True)
class Decisions:
    """What was sampled for (R, T) target positions, each tensor summed over the decisions made at a position.

    log_probability: of what was sampled, and entropy: of the distribution (nats), both differentiable; baseline: a
    learned guess at the mean reward of the tokens from there on, less that of other rows, differentiable;
    entropy_weight, baseline_weight: of these two in the loss. discount: γ, of rewards to come a token later. name: what
    the log calls them.
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
    """What was collected. penalties and counts: by name; decisions: by module, one entry a call, in time's order.

    step: the update that it is collected in, from 1, for modules that change in the course of a run.
    """

    step: int = 1
    penalties: dict[str, list[Penalty]] = field(default_factory=dict)
    decisions: dict[nn.Module, list[Decisions]] = field(default_factory=dict)
    counts: dict[str, Tensor] = field(default_factory=dict)

    def penalise(self, name: str, total: Tensor, count: Tensor | float, weight: float, additive: bool = False) -> None:
        """Add weight · total / count to the loss of a target token.

        additive: weight · total is added to the loss of the whole batch instead, as the cross-entropy's sum is. Then
        the parts of a batch give the gradient of the whole, whatever their counts.
        """
        self.penalties.setdefault(name, []).append(Penalty(total, count, weight, additive))

    def decide(self, module: nn.Module, decisions: Decisions) -> None:
        """Hand over what `module` sampled; calls for later positions come later."""
        self.decisions.setdefault(module, []).append(decisions)

    def count(self, name: str, counts: Tensor) -> None:
        """Add to a vector of counts that is reported, such as the tokens that each expert read.

        Modules may count under one name with vectors of different lengths; the longest one's stays.
        """
        counts = counts.detach()
        before = self.counts.get(name, counts.new_zeros(0))
        missing = len(before) - len(counts)
        self.counts[name] = functional.pad(before, (0, max(0, -missing))) + functional.pad(counts, (0, max(0, missing)))

    def absorb(self, calls: Sequence["Auxiliary"]) -> None:
        """Take in what one text's parts, read one after another, have told.

        A penalty of a module is then one mean over all parts, as if it had read them at once.
        """
        for name in dict.fromkeys(name for call in calls for name in call.penalties):
            told = [call.penalties[name] for call in calls if name in call.penalties]
            for parts in zip(*told, strict=True):  # one module's, or one layer's
                total = torch.stack([part.total for part in parts]).sum()
                count = sum((part.count for part in parts), 0.0)
                self.penalties.setdefault(name, []).append(replace(parts[0], total=total, count=count))
        for call in calls:
            for module, decisions in call.decisions.items():
                self.decisions.setdefault(module, []).extend(decisions)
            for name, counts in call.counts.items():
                self.count(name, counts)

    def penalty(self, tokens: int) -> tuple[Tensor | float, dict[str, float]]:
        """What to add to the summed loss of so many target tokens (scalar, differentiable), and means by name."""
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
    """While open, modules hand over what they have to tell; step: as of `Auxiliary`."""
    auxiliary = Auxiliary(step)
    token = _collector.set(auxiliary)
    try:
        yield auxiliary
    finally:
        _collector.reset(token)


def collector() -> Auxiliary | None:
    """Where to tell it, or None."""
    return _collector.get()
