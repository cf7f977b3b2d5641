"""Learning-rate schedules: pure functions of the step and of how much of the run is done."""

from math import cos, pi, sqrt
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.settings.config import Config

_WARMUP = "Linear warm-up: a number of steps if at least 1, or a share of the run if below 1 (paper: 4000 steps)."


class _Schedule(Config):
    warmup: float = Field(4000, ge=0, description=_WARMUP)

    @property
    def needs_length(self) -> bool:
        """Whether the rate at a step depends on how long the run will be."""
        return 0 < self.warmup < 1

    def warmed(self, step: int, progress: float) -> float:
        """How far the warm-up is: 0 at the start, 1 from its end on."""
        if self.warmup == 0:
            return 1.0
        return min(1.0, step / self.warmup if self.warmup >= 1 else progress / self.warmup)

    def decayed(self, step: int, progress: float) -> float:
        """How much of the time after the warm-up is over, between 0 and 1."""
        # progress grows by about a constant a step, which turns a warm-up in steps into a share.
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
        """The learning rate of the 1-based `step` when `progress` (0…1) of the run is done."""
        # In a run whose warm-up is a share, the share of progress that a step makes gives the warm-up in steps.
        warmup = self.warmup if self.warmup >= 1 or self.warmup == 0 else self.warmup * step / max(progress, 1e-12)
        warmup = max(warmup, 1.0)
        peak = self.peak if self.peak is not None else 1 / sqrt(width * warmup)
        return peak * min(step / warmup, sqrt(warmup / step))


class _Decaying(_Schedule):
    warmup: float = Field(0.05, ge=0, description=_WARMUP)
    peak: float = Field(1e-3, gt=0, description="Maximum learning rate, reached at the end of the warm-up.")
    floor: float = Field(0.0, ge=0, le=1, description="Final learning rate of the decay (share of peak).")

    @property
    def needs_length(self) -> bool:
        """Decays end with the run."""
        return True


class CosineConfig(_Decaying):
    """Half a cosine from the peak to the floor (Loshchilov & Hutter 2017, without restarts)."""

    kind: Literal["cosine"] = "cosine"

    def rate(self, step: int, progress: float, width: int) -> float:
        """The learning rate of the 1-based `step` when `progress` (0…1) of the run is done."""
        height = (1 + cos(pi * self.decayed(step, progress))) / 2
        return self.peak * self.warmed(step, progress) * (self.floor + (1 - self.floor) * height)


class LinearConfig(_Decaying):
    """A straight line from the peak to the floor."""

    kind: Literal["linear"] = "linear"

    def rate(self, step: int, progress: float, width: int) -> float:
        """The learning rate of the 1-based `step` when `progress` (0…1) of the run is done."""
        height = 1 - self.decayed(step, progress)
        return self.peak * self.warmed(step, progress) * (self.floor + (1 - self.floor) * height)


class ConstantConfig(_Schedule):
    """Constant learning rate after the warm-up."""

    kind: Literal["constant"] = "constant"
    peak: float = Field(1e-3, gt=0, description="Learning rate after the warm-up.")

    def rate(self, step: int, progress: float, width: int) -> float:
        """The learning rate of the 1-based `step` when `progress` (0…1) of the run is done."""
        return self.peak * self.warmed(step, progress)


ScheduleConfig = Annotated[
    InverseSquareRootConfig | CosineConfig | LinearConfig | ConstantConfig, Field(discriminator="kind")
]


# Measured for narrow models on 29,000 pairs (docs/EXPERIMENTS.md): 0.003 at width 192 after 250 updates of warm-up. The
# paper's have 0.0007 at width 512 after 4,000.
_PAPER_WIDTH = 512
_NARROW_PEAK, _NARROW_WIDTH, _NARROW_WARMUP = 0.003, 192, 250
_PAPER_WARMUP = 4000


def default_schedule(width: int, limited: bool, averaged: bool) -> ScheduleConfig:
    """A cosine that ends with the run where it is `limited`, else the paper's, which can go on for ever.

    Models narrower than the paper's, for small corpora, begin higher and sooner. Where a moving average of their
    parameters is kept, it does what a falling rate would (Hägele et al. 2024), and the rate stays: that was measured to
    be better (docs/EXPERIMENTS.md). width: d. averaged: whether there is a moving average.
    """
    if width >= _PAPER_WIDTH:
        return CosineConfig(peak=1 / sqrt(width * _PAPER_WARMUP)) if limited else InverseSquareRootConfig()
    peak = _NARROW_PEAK * sqrt(_NARROW_WIDTH / width)
    if averaged:
        return ConstantConfig(peak=peak, warmup=_NARROW_WARMUP)
    if limited:
        return CosineConfig(peak=peak, warmup=_NARROW_WARMUP)
    return InverseSquareRootConfig(warmup=_NARROW_WARMUP, peak=peak)
