"""Learning-rate schedules: pure functions of the step and of the share of the run that is done."""

from math import cos, pi, sqrt
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.settings.config import Config

_WARMUP = "Length of the linear warm-up: a number of steps, or a share of the run if below 1 (paper: 4000 steps)."


class _Schedule(Config):
    warmup: float = Field(4000, ge=0, description=_WARMUP)

    @property
    def needs_length(self) -> bool:
        """Whether the rate at a step depends on the length of the run."""
        return 0 < self.warmup < 1

    def warmed(self, step: int, progress: float) -> float:
        """Return the progress of the warm-up: 0 at the start, 1 after its end."""
        if self.warmup == 0:
            return 1.0
        return min(1.0, step / self.warmup if self.warmup >= 1 else progress / self.warmup)

    def decayed(self, step: int, progress: float) -> float:
        """Return the share (0…1) of the steps after the warm-up that are done."""
        # progress grows by about the same amount per step, which converts a warm-up in steps into a share.
        start = self.warmup if self.warmup < 1 else min(1.0, progress * self.warmup / max(step, 1))
        if start >= 1:  # the run ends within its warm-up
            return float(progress >= 1)
        return min(1.0, max(0.0, (progress - start) / (1 - start)))


class InverseSquareRootConfig(_Schedule):
    """lr = peak · min(step/warmup, √(warmup/step)); without `peak` d^-0.5 · min(step^-0.5, step · warmup^-1.5).

    Vaswani et al. 2017, equation 3: the two agree for peak = (d · warmup)^-0.5.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    peak: float | None = Field(
        None, gt=0, description="Maximum learning rate; null: (d · warmup)^-0.5, as in the paper."
    )

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate of `step` (from 1) when the share `progress` (0…1) of the run is done."""
        # The progress per step converts a warm-up given as a share into steps.
        warmup = self.warmup if self.warmup >= 1 or self.warmup == 0 else self.warmup * step / max(progress, 1e-12)
        warmup = max(warmup, 1.0)
        peak = self.peak if self.peak is not None else 1 / sqrt(width * warmup)
        return peak * min(step / warmup, sqrt(warmup / step))


class _Decaying(_Schedule):
    warmup: float = Field(0.05, ge=0, description=_WARMUP)
    peak: float = Field(1e-3, gt=0, description="Maximum learning rate, reached at the end of the warm-up.")
    floor: float = Field(0.0, ge=0, le=1, description="Final learning rate, as a share of the peak.")

    @property
    def needs_length(self) -> bool:
        """Return True, because the decay ends with the run."""
        return True


class CosineConfig(_Decaying):
    """Cosine decay from the peak to the floor (Loshchilov & Hutter 2017, without restarts)."""

    kind: Literal["cosine"] = "cosine"

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate of `step` (from 1) when the share `progress` (0…1) of the run is done."""
        height = (1 + cos(pi * self.decayed(step, progress))) / 2
        return self.peak * self.warmed(step, progress) * (self.floor + (1 - self.floor) * height)


class LinearConfig(_Decaying):
    """Linear decay from the peak to the floor."""

    kind: Literal["linear"] = "linear"

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate of `step` (from 1) when the share `progress` (0…1) of the run is done."""
        height = 1 - self.decayed(step, progress)
        return self.peak * self.warmed(step, progress) * (self.floor + (1 - self.floor) * height)


class ConstantConfig(_Schedule):
    """Constant learning rate after the warm-up."""

    kind: Literal["constant"] = "constant"
    peak: float = Field(1e-3, gt=0, description="Learning rate after the warm-up.")

    def rate(self, step: int, progress: float, width: int) -> float:
        """Return the learning rate of `step` (from 1) when the share `progress` (0…1) of the run is done."""
        return self.peak * self.warmed(step, progress)


ScheduleConfig = Annotated[
    InverseSquareRootConfig | CosineConfig | LinearConfig | ConstantConfig, Field(discriminator="kind")
]


# Measured for narrow models on 29,000 pairs (docs/EXPERIMENTS.md): 0.003 at width 192 after a warm-up of 250 updates.
# The paper has 0.0007 at width 512 after 4,000.
_PAPER_WIDTH = 512
_NARROW_PEAK, _NARROW_WIDTH, _NARROW_WARMUP = 0.003, 192, 250
_PAPER_WARMUP = 4000


def default_schedule(width: int, limited: bool, averaged: bool) -> ScheduleConfig:
    """Return the default schedule: cosine if the run is `limited`, else the paper's, which has no end.

    Models narrower than the paper's get a higher peak and a shorter warm-up. With a moving average of the parameters,
    their rate stays constant, because the average has the effect of a decaying rate (Hägele et al. 2024); this was
    measured to be better (docs/EXPERIMENTS.md). width: d. averaged: whether a moving average is kept.
    """
    if width >= _PAPER_WIDTH:
        return CosineConfig(peak=1 / sqrt(width * _PAPER_WARMUP)) if limited else InverseSquareRootConfig()
    peak = _NARROW_PEAK * sqrt(_NARROW_WIDTH / width)
    if averaged:
        return ConstantConfig(peak=peak, warmup=_NARROW_WARMUP)
    if limited:
        return CosineConfig(peak=peak, warmup=_NARROW_WARMUP)
    return InverseSquareRootConfig(warmup=_NARROW_WARMUP, peak=peak)
