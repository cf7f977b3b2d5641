"""`Progress`: where a run stands, as plain values that a snapshot stores."""

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
"""Nats a token. A loss this far above its lowest running mean has not been seen to come back."""


@dataclass
class DivergenceWatch:
    """Keeps a running mean of the loss (nats a token) and its lowest value."""

    mean: float | None = None
    lowest: float = float("inf")

    def check(self, step: int, result: StepResult) -> None:
        """Raises DivergenceError when the loss or gradient is not finite, or the loss exploded."""
        if not (isfinite(result.loss) and isfinite(result.gradient_norm)):
            self._raise(step, f"the loss is {result.loss}, the gradient's norm {result.gradient_norm}")
        self.mean = result.loss if self.mean is None else _MEMORY * self.mean + (1 - _MEMORY) * result.loss
        self.lowest = min(self.lowest, self.mean)
        if self.mean > self.lowest + _RISE:
            self._raise(step, f"the mean loss rose from {self.lowest:.2f} to {self.mean:.2f} nats a token")

    def _raise(self, step: int, what: str) -> None:
        raise DivergenceError(
            f"training diverged at step {step}: {what}. Checkpoints written before are kept. "
            "Start again with a lower train.schedule.peak, a longer train.schedule.warmup or a smaller train.clip"
        )


@dataclass
class PendingSums:
    """Sums over the steps since the last training line of the log: a snapshot may lie between two lines.

    loss and norm: of the steps' tokens (nats) and of the gradients; seconds: spent on these steps; auxiliary and
    counts: by name, what modules told, the former times each step's tokens. losses: by task, of the steps.
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
class Progress:
    """step: updates made; epoch, batch: the next batch to read; seconds and target_tokens: of the whole run so far.

    scores: what 'better' compares, by validation step; best_step: where it was highest; waited:
    validations since then; finished: why the run ended, once it has. limits: those that horizon was made for; data,
    valid: fingerprints of the corpus and of the validation set. ranks: how many processes trained last. loss_scale:
    of the next update, where it is float16.
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

    def validated(self, score: tuple[float, ...]) -> bool:
        """Take in the score of the current step; whether it is the best so far."""
        self.scores[self.step] = score
        better = self.best_step is None or score > self.scores[self.best_step]
        self.best_step, self.waited = (self.step, 0) if better else (self.best_step, self.waited + 1)
        return better

    def ranked(self) -> list[int]:
        """The validated steps, best first; among equals the earlier, as `best_step` takes it."""
        return sorted(self.scores, key=lambda step: (self.scores[step], -step), reverse=True)

    def to_json(self) -> dict[str, Any]:
        """Values that JSON keeps exactly."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Progress":
        """What `to_json` gave, after a way through JSON."""
        values = dict(values)
        values["horizon"] = Horizon(**values["horizon"])
        values["watch"] = DivergenceWatch(**values["watch"])
        values["loss_scale"] = LossScale(**values.get("loss_scale", {}))
        values["unlogged"] = PendingSums(**values.get("unlogged", {}))
        values["scores"] = {int(step): tuple(score) for step, score in values["scores"].items()}
        return cls(**values)


def added(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The sums of two lists of counts, the shorter one filled with zeros."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]
