"""`RunClock`: the elapsed time of a run, and the decisions that depend on its limits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.base.log import warn
from dragoman.training.config import LoopConfig
from dragoman.training.progress.progress import RunProgress
from dragoman.training.progress.time_budget import TimeBudget
from dragoman.training.run.session import Session

_MARGIN, _LONGEST_MARGIN = 0.02, 5.0
"""Fraction of a time limit, and number of seconds, before its end at which the last step should end."""

_starts: list[float] = []
"""The start of the command until its first run has taken it."""


@contextmanager
def started_at(begun: float) -> Iterator[None]:
    """Count the time of the first run within the context from `begun`, by `time.monotonic`.

    A command imports libraries before the run, which takes seconds on a busy machine.
    """
    _starts[:] = [begun]
    try:
        yield
    finally:
        _starts.clear()


def take_start() -> float:
    """Return the start of the command for its first run, and the current time for any other run."""
    return _starts.pop() if _starts else time.monotonic()


def return_start(begun: float) -> None:
    """Let the next run take the start of the command, where another run has taken it."""
    _starts[:] = [begun]


class RunClock:
    """Counts the time of a run, from the start of the command to its end and summed over resumed runs.

    `RunProgress.seconds` is the time of updates, validations and checkpoints; `prepared` is the time before them. All
    ranks use the times of the first one, so that they make the same decisions. Decisions are recorded in the journal.
    """

    def __init__(self, session: Session, begun: float, progress: RunProgress) -> None:
        """begun: time at which the command started, by `time.monotonic`. progress: state of a new run."""
        self._session, self._config = session, session.config
        self._preparation = session.ranks.broadcast(time.monotonic() - begun)
        self._has_warned = False
        self.restore(progress)

    def restore(self, progress: RunProgress) -> None:
        """Continue from the state of a run, and add the preparation of this process to its time."""
        self.progress = progress
        progress.prepared += self._preparation
        self._started = time.monotonic() - progress.seconds

    def seconds(self) -> float:
        """Return the time since the end of the preparation, summed over resumed runs."""
        return time.monotonic() - self._started

    @property
    def budget(self) -> TimeBudget | None:
        """How the time limit is shared; None without a time limit."""
        config, progress = self._config, self.progress
        if config.max_minutes is None:
            return None
        first_checkpoint = min(config.checkpoint_every, config.validate_every or config.checkpoint_every)
        averages = config.average.count > 1 and progress.step > first_checkpoint
        limit, validation = 60 * config.max_minutes, progress.validation_seconds
        measuring = self._session.job.measuring_seconds(limit, validation or 0.0)
        return TimeBudget(limit, progress.prepared, measuring, 1 + averages, validation, progress.saving_seconds)

    @property
    def update_limits(self) -> LoopConfig:
        """The settings with the time for updates as the time limit."""
        return self._config if (budget := self.budget) is None else budget.of_updates(self._config)

    @property
    def deadline(self) -> float | None:
        """The time at which the last step should end, by `time.monotonic`; None without a time limit.

        It is a little before the limit, because a step that has no time left only ends after its current batch.
        """
        budget = self.budget
        if budget is None:
            return None
        return self._started + budget.limit - budget.prepared - min(_LONGEST_MARGIN, _MARGIN * budget.limit)

    def leaves_validation(self) -> bool:
        """Return whether a further validation of the final model ends before the whole run should end."""
        deadline, validation = self.deadline, self.progress.validation_seconds or 0.0
        in_time = deadline is None or time.monotonic() + validation <= deadline
        return bool(self._session.ranks.broadcast(in_time))

    def describe(self) -> str:
        """Return the duration of the run and of its parts in minutes, summed over resumed runs."""
        prepared, trained, last = self.progress.prepared, self.progress.seconds, self.seconds() - self.progress.seconds
        parts = ((prepared, "preparation"), (trained, "training"), (last, "the final model"))
        listed = ", ".join(f"{name} {seconds / 60:.1f}" for seconds, name in parts)
        return f"{(prepared + trained + last) / 60:.1f} minutes ({listed})"

    def limit_reached(self) -> str | None:
        """Return which limit of the run has been reached, or None."""
        progress, config, budget = self.progress, self._config, self.budget
        if self._session.job.is_estimated:
            return "the model is estimated without updates"
        if config.max_steps is not None and progress.step >= config.max_steps:
            return f"train.max_steps={config.max_steps} reached"
        if config.max_epochs is not None and progress.epoch >= config.max_epochs:
            return f"train.max_epochs={config.max_epochs} reached"
        if budget is not None:
            is_over = progress.seconds >= budget.for_updates or progress.step >= (progress.horizon.end or 0) > 0
            # The last step is recorded because it depends on the clock: a run that is resumed from an earlier step
            # stops at the same step.
            stop = self._session.journal.decide("stop", 0, lambda: progress.step if is_over else None)
            if stop is not None and progress.step >= stop:
                return f"train.max_minutes={config.max_minutes:g} reached"
        return None

    def is_validation_due(self) -> bool:
        """Return whether the current step is validated.

        A validation that would end after the time for updates is left out, because the last step is validated anyway.
        """
        step, every, budget = self.progress.step, self._config.validate_every, self.budget
        assert every is not None, "set by `setup`"
        if step == 0 or step % every:
            return False
        if budget is None:
            return True
        seconds = self.progress.seconds
        left_out = self._session.journal.decide("left out", step, lambda: not budget.leaves_validation(seconds) or None)
        return left_out is None

    def requires_probe(self) -> bool:
        """Return whether the duration of a validation should be measured now, before the first validation."""
        budget, progress = self.budget, self.progress
        return budget is not None and progress.finished is None and budget.requires_probe(progress.seconds)

    def note_validation(self, seconds: float) -> None:
        """Store the duration of a validation, and warn once if the limit leaves little time for updates."""
        self.progress.validation_seconds = self._session.ranks.broadcast(seconds)
        self.warn()

    def note_snapshot(self, seconds: float) -> None:
        """Store the duration of writing a snapshot."""
        self.progress.saving_seconds = self._session.ranks.broadcast(seconds)

    def warn(self) -> None:
        """Warn, once, if the time limit leaves little time for updates."""
        problem = None if (budget := self.budget) is None else budget.problem()
        if problem is not None and not self._has_warned and self._session.ranks.is_main:
            self._has_warned = True
            warn(problem)
