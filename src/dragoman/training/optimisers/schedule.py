"""Learning-rate schedules: pure functions of the step and of the completed fraction of the run."""

from math import cos, pi, sqrt
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.settings.config import Config

_WARMUP = "Length of the linear warm-up: a number of steps, or a fraction of the run if below 1 (paper: 4000 steps)."


class _Schedule(Config):
    warmup: float = Field(4000, ge=0, description=_WARMUP)

    @property
    def needs_length(self) -> bool:
        """Whether the rate at a step depends on the length of the run."""
        return 0 < self.warmup < 1

    def warmup_factor(self, step: int, progress: float) -> float:
        """Return a factor that rises from 0 at the start of the warm-up to 1 at its end."""
        if self.warmup == 0:
            return 1.0
        return min(1.0, step / self.warmup if self.warmup >= 1 else progress / self.warmup)

    def decay_progress(self, step: int, progress: float) -> float:
        """Return the completed fraction (0…1) of the steps after the warm-up."""
        # A warm-up in steps is converted to a fraction of the run, because progress grows by about the same amount per
        # step.
        start = self.warmup if self.warmup < 1 else min(1.0, progress * self.warmup / max(step, 1))
        if start >= 1:  # the run ends within its warm-up
            return float(progress >= 1)
        return min(1.0, max(0.0, (progress - start) / (1 - start)))


class InverseSquareRootConfig(_Schedule):
    """Inverse square root decay after a linear warm-up (Vaswani et al. 2017, equation 3).

    lr = peak · min(step/warmup, √(warmup/step)). If `peak` is null, lr = d^-0.5 · min(step^-0.5, step · warmup^-1.5),
    which is the same for peak = (d · warmup)^-0.5.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    peak: float | None = Field(
        None, gt=0, description="Maximum learning rate; null: (d · warmup)^-0.5, as in the paper."
    )

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate at `step` (from 1). progress: completed fraction of the run (0…1)."""
        # A warm-up given as a fraction of the run is converted to steps by the progress per step.
        warmup = self.warmup if self.warmup >= 1 or self.warmup == 0 else self.warmup * step / max(progress, 1e-12)
        warmup = max(warmup, 1.0)
        peak = self.peak if self.peak is not None else 1 / sqrt(width * warmup)
        return peak * min(step / warmup, sqrt(warmup / step))


class _Decaying(_Schedule):
    warmup: float = Field(0.05, ge=0, description=_WARMUP)
    peak: float = Field(1e-3, gt=0, description="Maximum learning rate, reached at the end of the warm-up.")
    floor: float = Field(0.0, ge=0, le=1, description="Final learning rate, as a fraction of the peak.")

    @property
    def needs_length(self) -> bool:
        """Whether the rate depends on the length of the run: always True, because the decay ends with the run."""
        return True


class CosineConfig(_Decaying):
    """Cosine decay from the peak to the floor (Loshchilov & Hutter 2017, without restarts)."""

    kind: Literal["cosine"] = "cosine"

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate at `step` (from 1). progress: completed fraction of the run (0…1)."""
        decay = (1 + cos(pi * self.decay_progress(step, progress))) / 2
        return self.peak * self.warmup_factor(step, progress) * (self.floor + (1 - self.floor) * decay)


class LinearConfig(_Decaying):
    """Linear decay from the peak to the floor."""

    kind: Literal["linear"] = "linear"

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate at `step` (from 1). progress: completed fraction of the run (0…1)."""
        decay = 1 - self.decay_progress(step, progress)
        return self.peak * self.warmup_factor(step, progress) * (self.floor + (1 - self.floor) * decay)


class ConstantConfig(_Schedule):
    """Constant learning rate after the warm-up."""

    kind: Literal["constant"] = "constant"
    peak: float = Field(1e-3, gt=0, description="Learning rate after the warm-up.")

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate at `step` (from 1). progress: completed fraction of the run (0…1)."""
        return self.peak * self.warmup_factor(step, progress)


ScheduleConfig = Annotated[
    InverseSquareRootConfig | CosineConfig | LinearConfig | ConstantConfig, Field(discriminator="kind")
]


# The constants for narrow models were measured on 29,000 pairs (docs/EXPERIMENTS.md): a peak of 0.003 at width 192
# after a warm-up of 250 updates. The paper's schedule has a peak of 0.0007 at width 512 after 4,000 updates.
_PAPER_WIDTH = 512
_NARROW_PEAK, _NARROW_WIDTH, _NARROW_WARMUP = 0.003, 192, 250
_PAPER_WARMUP = 4000


def default_schedule(width: int, limited: bool, averaged: bool) -> ScheduleConfig:
    """Return the default schedule: cosine if the run is `limited`, otherwise inverse square root, which has no end.

    Models narrower than the paper's get a higher peak and a shorter warm-up. If the parameters of a narrow model are
    averaged, its rate stays constant, because the average has the effect of a decaying rate (Hägele et al. 2024).
    Measurements showed that this is better (docs/EXPERIMENTS.md). width: the model width d. averaged: whether the run
    has a moving average of the parameters.
    """
    if width >= _PAPER_WIDTH:
        return CosineConfig(peak=1 / sqrt(width * _PAPER_WARMUP)) if limited else InverseSquareRootConfig()
    peak = _NARROW_PEAK * sqrt(_NARROW_WIDTH / width)
    if averaged:
        return ConstantConfig(peak=peak, warmup=_NARROW_WARMUP)
    if limited:
        return CosineConfig(peak=peak, warmup=_NARROW_WARMUP)
    return InverseSquareRootConfig(warmup=_NARROW_WARMUP, peak=peak)
