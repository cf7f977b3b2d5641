"""`RunProgress`: the position of a run as plain values stored in snapshots, and the detection of divergence."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from math import isfinite
from typing import Any

from dragoman.base.errors import DivergenceError
from dragoman.training.machine.precision import LossScale
from dragoman.training.progress.horizon import Horizon
from dragoman.training.updates.update import StepResult

_MEMORY = 0.98
_RISE = 3.0
"""Nats per token. No run is known to have recovered after its mean loss rose this far above its lowest value."""


@dataclass
class DivergenceWatch:
    """Keeps a running mean of the loss (nats per token) and its lowest value."""

    mean: float | None = None
    lowest: float = float("inf")

    def check(self, step: int, result: StepResult) -> None:
        """Raise DivergenceError if the loss or the gradient is not finite, or if the loss has exploded."""
        if not (isfinite(result.loss) and isfinite(result.gradient_norm)):
            self._raise(step, f"the loss is {result.loss}, the gradient norm {result.gradient_norm}")
        self.mean = result.loss if self.mean is None else _MEMORY * self.mean + (1 - _MEMORY) * result.loss
        self.lowest = min(self.lowest, self.mean)
        if self.mean > self.lowest + _RISE:
            self._raise(step, f"the mean loss rose from {self.lowest:.2f} to {self.mean:.2f} nats per token")

    def _raise(self, step: int, what: str) -> None:
        raise DivergenceError(
            f"training diverged at step {step}: {what}. Earlier checkpoints are kept. "
            "Start again with a lower train.schedule.peak, a longer train.schedule.warmup or a smaller train.clip"
        )


@dataclass
class PendingSums:
    """Sums over the steps since the last training line of the log; a snapshot may lie between two lines.

    loss: summed over tokens (nats); norm: of gradients; seconds: duration of these steps; auxiliary: auxiliary losses
    by name, weighted by each step's tokens; counts: counters of modules by name; losses: by task.
    """

    steps: int = 0
    tokens: int = 0
    loss: float = 0.0
    norm: float = 0.0
    seconds: float = 0.0
    auxiliary: dict[str, float] = field(default_factory=dict)
    counts: dict[str, list[float]] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)


@dataclass
class RunProgress:
    """The position of a run.

    step: number of updates so far; epoch, batch: the next batch to read; seconds, target_tokens: totals of the run so
    far. scores: validation scores by step, higher is better; best_step: the step with the best score; waited: number of
    validations since then. finished: the reason why the run ended, or None. limits: the limits that `horizon` was
    computed for. data, valid: fingerprints of the corpora and of the validation sets. ranks: number of processes that
    trained last. loss_scale: the scale of the next update, for float16. unlogged: sums since the last training line of
    the log.
    """

    horizon: Horizon
    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    target_tokens: int = 0
    scores: dict[int, tuple[float, ...]] = field(default_factory=dict)
    best_step: int | None = None
    waited: int = 0
    watch: DivergenceWatch = field(default_factory=DivergenceWatch)
    finished: str | None = None
    limits: dict[str, float | None] = field(default_factory=dict)
    data: str | None = None
    valid: str | None = None
    ranks: int = 1
    loss_scale: LossScale = field(default_factory=LossScale)
    unlogged: PendingSums = field(default_factory=PendingSums)

    def add_score(self, score: tuple[float, ...]) -> bool:
        """Add the score of the current step and return whether it is the best so far."""
        self.scores[self.step] = score
        better = self.best_step is None or score > self.scores[self.best_step]
        self.best_step, self.waited = (self.step, 0) if better else (self.best_step, self.waited + 1)
        return better

    def ranked(self) -> list[int]:
        """Return the validated steps, best first; among equal scores, the earlier step comes first."""
        return sorted(self.scores, key=lambda step: (self.scores[step], -step), reverse=True)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as values that JSON represents exactly."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "RunProgress":
        """Restore the progress from the values of `to_json`, after a round trip through JSON."""
        values = dict(values)
        values["horizon"] = Horizon(**values["horizon"])
        values["watch"] = DivergenceWatch(**values["watch"])
        values["loss_scale"] = LossScale(**values.get("loss_scale", {}))
        values["unlogged"] = PendingSums(**values.get("unlogged", {}))
        values["scores"] = {int(step): tuple(score) for step, score in values["scores"].items()}
        return cls(**values)


def added(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the element-wise sums of two lists of counts; the shorter one is padded with zeros."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]
