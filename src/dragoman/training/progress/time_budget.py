"""`TimeBudget`: how the time limit of a run is shared among preparation, updates, validation and measurement."""

from dataclasses import dataclass

from dragoman.training.config import LoopConfig

_UNMEASURED = 0.1
"""Fraction of the limit that is reserved for a validation until one has been measured."""

_PROBE = 0.25
"""Fraction of the limit after which the duration of a validation is measured if none has taken place."""

_SNAPSHOTS = 4
"""How long it takes to write all that follows the last update, in snapshots: two of these, and three models. The first
snapshot is smaller than the following ones, because the optimiser has no state yet."""

_LONG = 0.5
"""Fraction of the limit above which a warning reports the time that is reserved for the end of the run."""


@dataclass(frozen=True)
class TimeBudget:
    """The parts of `train.max_minutes`, in seconds.

    limit: the whole time, from the start of the command to its end, summed over resumed runs. prepared: the time before
    the first update: reading and tokenising the corpora, statistical systems, building the model. measuring: the time
    that the task needs to measure the final model. validations: number of validations after the last update: one of
    the last parameters, and one of the mean of several checkpoints. validation: duration of one validation, None if it
    is unknown. snapshot: duration of writing a snapshot.
    """

    limit: float
    prepared: float
    measuring: float
    validations: int
    validation: float | None = None
    snapshot: float = 0.0

    @property
    def reserved(self) -> float:
        """The time after the last update: validations, writing of snapshots and models, and measurements."""
        each = _UNMEASURED * self.limit if self.validation is None else self.validation
        return self.validations * each + _SNAPSHOTS * self.snapshot + self.measuring

    @property
    def for_updates(self) -> float:
        """The time for updates, and for the validations and checkpoints between them; 0 if none is left."""
        return max(0.0, self.limit - self.prepared - self.reserved)

    def of_updates(self, config: LoopConfig) -> LoopConfig:
        """Return the settings with the time for updates as their limit."""
        return config.model_copy(update={"max_minutes": self.for_updates / 60})

    def requires_probe(self, seconds: float) -> bool:
        """Return whether the duration of a validation should be measured now. seconds: time spent on updates."""
        return self.validation is None and self.prepared + seconds >= _PROBE * self.limit

    def leaves_validation(self, seconds: float) -> bool:
        """Return whether a validation between updates still ends before the time for updates does."""
        return seconds + (self.validation or 0.0) <= self.for_updates

    def problem(self) -> str | None:
        """Return a message if little time is left for updates; None otherwise."""
        left = f"{self.for_updates / 60:.2g} of train.max_minutes={self.limit / 60:g} are left for updates"
        if self.prepared >= _LONG * self.limit:
            return f"the preparation took {self.prepared / 60:.2g} minutes: {left}. Raise the limit, or use less data"
        if self.validation is not None and self.reserved >= _LONG * self.limit:
            return (
                f"a validation takes {self.validation / 60:.2g} minutes, and up to {self.validations} follow the last "
                f"update: {left}. Raise the limit, validate on fewer examples (data.valid), or set "
                "train.average.count=1"
            )
        return None
