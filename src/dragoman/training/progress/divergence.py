"""Noticing that training has gone wrong before it overwrites anything good."""

from dataclasses import dataclass
from math import isfinite

from dragoman.base.errors import DivergenceError
from dragoman.training.updates.engine import StepResult

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
