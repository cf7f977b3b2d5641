"""`RunProgress`: the state of a run as plain values, which snapshots store, and the detection of divergence."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from math import isfinite
from typing import Any

from dragoman.base.errors import DivergenceError
from dragoman.training.machine.precision import LossScale
from dragoman.training.progress.horizon import Horizon
from dragoman.training.updates.update import StepResult

_DECAY = 0.98
_MAX_RISE = 3.0
"""Nats per token. No run is known to have recovered after its mean loss rose this far above its lowest value."""


@dataclass
class DivergenceWatch:
    """A running mean of the loss (nats per token), and the lowest value of this mean."""

    mean: float | None = None
    lowest: float = float("inf")

    def check(self, step: int, result: StepResult) -> None:
        """Update the mean. Raises DivergenceError if the loss or gradient is not finite, or if the loss exploded."""
        if not (isfinite(result.loss) and isfinite(result.gradient_norm)):
            self._raise(step, f"the loss is {result.loss}, the gradient norm {result.gradient_norm}")
        self.mean = result.loss if self.mean is None else _DECAY * self.mean + (1 - _DECAY) * result.loss
        self.lowest = min(self.lowest, self.mean)
        if self.mean > self.lowest + _MAX_RISE:
            self._raise(step, f"the mean loss rose from {self.lowest:.2f} to {self.mean:.2f} nats per token")

    def _raise(self, step: int, reason: str) -> None:
        raise DivergenceError(
            f"training diverged at step {step}: {reason}. Earlier checkpoints are kept. "
            "Start again with a lower train.schedule.peak, a longer train.schedule.warmup or a smaller train.clip"
        )


@dataclass
class PendingSums:
    """Sums over the steps since the last training line of the log. Snapshots include them.

    loss: sum over tokens (nats). norm: sum of the gradient norms. seconds: duration of these steps. auxiliary: sums of
    auxiliary losses by name, weighted by each step's tokens. counts: module counters by name. losses: sums of the
    losses by task.
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
    """The state of a run.

    step: number of updates so far. epoch, batch: position of the next batch. seconds, target_tokens: totals of the run
    so far. scores: validation scores by step; higher is better. best_step: step with the best score. waited: number of
    validations since `best_step`. peaks: best value of each metric that selects the best step together with others;
    higher is better. finished: reason why the run ended, or None. limits: the limits for which `horizon`
    was computed. data, valid: fingerprints of the corpora and of the validation sets. ranks: number of processes that
    trained most recently. loss_scale: scale of the next update, for float16. unlogged: sums since the last training
    line of the log. prepared: seconds before the first update, summed over resumed runs. validation_seconds: duration
    of the latest validation, or an estimate; None if it is unknown. saving_seconds: duration of the latest snapshot.
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
    peaks: list[float] = field(default_factory=list)
    watch: DivergenceWatch = field(default_factory=DivergenceWatch)
    finished: str | None = None
    limits: dict[str, float | None] = field(default_factory=dict)
    data: str | None = None
    valid: str | None = None
    ranks: int = 1
    loss_scale: LossScale = field(default_factory=LossScale)
    unlogged: PendingSums = field(default_factory=PendingSums)
    prepared: float = 0.0
    validation_seconds: float | None = None
    saving_seconds: float = 0.0

    def add_score(self, score: tuple[float, ...], joint: Sequence[float] = ()) -> bool:
        """Add the score of the current step and return whether it is the best so far.

        joint: the scores that select the best step together (`LoopConfig.joint_metrics`), higher is better; empty:
        the score selects it.
        """
        self.scores[self.step] = score
        if joint:
            reached = [new >= old for new, old in zip(joint, self.peaks or joint, strict=True)]
            self.peaks = list(map(max, joint, self.peaks or joint))
            self.waited = 0 if any(reached) else self.waited + 1
            self.best_step = self.step if all(reached) else self.best_step
            return all(reached)
        better = self.best_step is None or score > self.scores[self.best_step]
        self.best_step, self.waited = (self.step, 0) if better else (self.best_step, self.waited + 1)
        return better

    def ranked(self) -> list[int]:
        """Return the validated steps, best first. If scores are equal, the earlier step comes first."""
        return sorted(self.scores, key=lambda step: (self.scores[step], -step), reverse=True)

    def to_json(self) -> dict[str, Any]:
        """Return the state as values that JSON represents exactly."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "RunProgress":
        """Restore the state from the values of `to_json`, after a round trip through JSON."""
        values = dict(values)
        values["horizon"] = Horizon(**values["horizon"])
        values["watch"] = DivergenceWatch(**values["watch"])
        values["loss_scale"] = LossScale(**values.get("loss_scale", {}))
        values["unlogged"] = PendingSums(**values.get("unlogged", {}))
        values["scores"] = {int(step): tuple(score) for step, score in values["scores"].items()}
        return cls(**values)


def add_counts(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the element-wise sums of two lists of counts; the shorter list is padded with zeros."""
    return [a + b for a, b in zip_longest(first, second, fillvalue=0)]
