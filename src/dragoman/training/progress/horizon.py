"""`Horizon`: the expected length of a run, and its completed fraction at a step."""

from dataclasses import dataclass

from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal

_ASSUMED_STEPS = 10_000
"""Assumed number of steps of a run that is limited only by time, until its speed has been measured."""

_FIRST_FIT = 5
_FIT_EVERY = 200
_FITS = 20
"""Number of refits while the remaining time shrinks by a factor of e. Minimum: one every `_FIT_EVERY` steps."""


@dataclass(frozen=True)
class Horizon:
    """The expected length of a run.

    progress: completed fraction of the run at `step`; the rest is spread evenly over the steps up to `end`. end: None
    for a run that is limited only by `patience`. pace: seconds per update, including validations and checkpoints.
    seconds: elapsed time of the run at `step`. Both are set only after the horizon has been fitted to the elapsed time.
    assumed: whether `end` is only assumed, because only time limits the run and its speed has not been measured yet.
    """

    step: int
    progress: float
    end: int | None
    pace: float | None = None
    seconds: float = 0.0
    assumed: bool = False

    @staticmethod
    def initial(config: LoopConfig, steps_per_epoch: int) -> "Horizon":
        """Return the horizon of a new run, before its speed has been measured."""
        end = step_limit(config, steps_per_epoch)
        if end is None and config.max_minutes:
            return Horizon(0, 0.0, _ASSUMED_STEPS, assumed=True)
        return Horizon(0, 0.0, end)

    def after_change(self, config: LoopConfig, step: int, seconds: float) -> "Horizon":
        """Return the horizon of a run whose limits were changed at `step`. seconds: elapsed time at this step."""
        if config.max_minutes is None or step == 0:
            return self
        by_clock = int(step * config.max_minutes * 60 / seconds)
        limited = config.max_steps is not None or config.max_epochs is not None
        end = min(by_clock, self.end) if limited and self.end is not None else by_clock
        return Horizon(step, min(1.0, step / end) if end else 1.0, end)

    def progress_at(self, step: int) -> float:
        """Return the completed fraction (0…1) of the run after `step` updates."""
        if self.end is None:
            return 0.0
        if step >= self.end:
            return 1.0
        return self.progress + (1 - self.progress) * (step - self.step) / (self.end - self.step)

    def refit(
        self, config: LoopConfig, steps_per_epoch: int, step: int, seconds: float, decisions: Journal
    ) -> "Horizon":
        """Return the horizon after `step` updates in `seconds`, refitted to `max_minutes` if a refit is due.

        A refit uses the recent speed. Refits become more frequent towards the end, so that a run whose speed changes
        still ends in time and completes its schedule. Each refit is recorded in the journal, because it depends on the
        clock.
        """
        if config.max_minutes is None or not self._is_due(step):
            return self
        max_seconds = config.max_minutes * 60

        def fit() -> list[float]:
            if self.pace is None:
                pace = seconds / step
            else:
                pace = (self.pace + (seconds - self.seconds) / (step - self.step)) / 2
            return [step + int(max(0.0, max_seconds - seconds) / pace), pace, seconds]

        end, pace, at = decisions.decide("fit", step, fit)
        limit = step_limit(config, steps_per_epoch)
        return Horizon(step, self.progress_at(step), end if limit is None else min(end, limit), pace, at)

    def _is_due(self, step: int) -> bool:
        if self.pace is None or self.end is None:
            return step >= self.step + _FIRST_FIT
        return step >= self.step + max(1, min(_FIT_EVERY, (self.end - self.step) // _FITS))


def step_limit(config: LoopConfig, steps_per_epoch: int) -> int | None:
    """Return the number of updates to which `max_steps` and `max_epochs` limit a run, or None."""
    limits = [config.max_steps, config.max_epochs and config.max_epochs * steps_per_epoch]
    return min((limit for limit in limits if limit), default=None)
