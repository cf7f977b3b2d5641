"""Checks that a resumed run has the same settings and data as before, except for settings that may change."""

from typing import Any, TypeVar

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.base.settings.load import flatten
from dragoman.checkpoint.store import TrainingSnapshot
from dragoman.training.task import Job, RunConfig

R = TypeVar("R", bound=RunConfig)

# A resumed run may get new limits and intervals; any other change would make it another run.
CHANGEABLE_SETTINGS = frozenset({"max_steps", "max_epochs", "max_minutes", "patience", "log_every", "parallel"})
# Settings that depend on the machine. They may change if a run is resumed on another one; rounding changes with them.
MACHINE_SETTINGS = ("device", "precision", "threads")


def with_choices_of(config: RunConfig, stored: R) -> R:
    """Return the stored run with the limits and machine settings of `config`.

    Raises ConfigError if the run's schedule needs a limit and none is set.
    """
    schedule = stored.train.schedule
    if schedule is not None and schedule.needs_length and not config.train.limited:
        raise ConfigError(
            f"cannot resume {config.out} without a limit: its {schedule.kind} schedule depends on the length of the "
            "run. Set train.max_steps, train.max_epochs or train.max_minutes"
        )
    changes = {name: getattr(config.train, name) for name in CHANGEABLE_SETTINGS} | _explicit_machine_settings(config)
    return stored.model_copy(update={"train": stored.train.model_copy(update=changes), "out": config.out})


def warn_of_rounding(config: RunConfig, stored: RunConfig) -> None:
    """Warn if the run continues with another device, precision or number of threads."""
    before = {name: getattr(stored.train, name) for name in MACHINE_SETTINGS}
    changed = [
        f"train.{name} was {before[name]!r} and is now {now!r}"
        for name, now in _explicit_machine_settings(config).items()
        if now != before[name]
    ]
    if changed:
        warn(
            f"{', '.join(changed)}: sums round differently and dropout may differ, so the result is not bit-identical "
            "to that of an uninterrupted run"
        )


def _explicit_machine_settings(config: RunConfig) -> dict[str, Any]:
    """Return the machine settings that are set explicitly."""
    named = {name: getattr(config.train, name) for name in MACHINE_SETTINGS}
    return {name: value for name, value in named.items() if value not in ("auto", None)}


def check_same_contents(job: Job, snapshot: TrainingSnapshot) -> None:
    """Raise ConfigError if a corpus or a validation set has changed since the run started."""
    for name, content in job.contents.items():
        # older snapshots do not contain all
        if (snapshot.state.get(name) or content.fingerprint) != content.fingerprint:
            raise ConfigError(
                f"cannot resume {job.run.out}: {content.name} has changed since the run started. Restore the old "
                "files, or train in another --out"
            )


def check_same_run(config: RunConfig, stored: RunConfig) -> None:
    """Raise ConfigError if the two runs differ in settings that must not change; it names them."""
    given, before = config.chosen_as(stored).model_dump(mode="json"), stored.model_dump(mode="json")
    for name in ("schedule", "dropout_epochs"):  # chosen by the run
        if given["train"][name] is None:
            given["train"][name] = before["train"][name]
    free = {"out"} | {f"train.{name}" for name in CHANGEABLE_SETTINGS.union(MACHINE_SETTINGS)}
    different = [
        key
        for key in sorted(set(flatten(given)) | set(flatten(before)))
        if flatten(given).get(key) != flatten(before).get(key) and key not in free
    ]
    if different:
        shown = ", ".join(
            f"{key} (was {flatten(before).get(key)!r}, now {flatten(given).get(key)!r})" for key in different[:5]
        )
        raise ConfigError(
            f"cannot resume {config.out} with other settings: {shown}. Use the original settings, or another --out"
        )
