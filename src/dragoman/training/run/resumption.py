"""Checks that a resumed run has the same settings and data as before, except for the settings that may change."""

from typing import Any, TypeVar

from dragoman.base.errors import ConfigError
from dragoman.base.log import info, warn
from dragoman.base.settings.load import flatten
from dragoman.checkpoint.store import TrainingSnapshot
from dragoman.training.task import Job, RunConfig

R = TypeVar("R", bound=RunConfig)

# Only these limits and intervals may change when a run is resumed.
CHANGEABLE_SETTINGS = frozenset({"max_steps", "max_epochs", "max_minutes", "patience", "log_every", "parallel"})
# These settings depend on the machine. They may change when a run is resumed; sums then round differently.
MACHINE_SETTINGS = ("device", "precision", "threads")


def apply_changes(config: RunConfig, stored: R) -> R:
    """Return the stored settings with the limits, intervals and machine settings that are set in `config`.

    A setting that is not set keeps its stored value; null removes a limit. Raises ConfigError if the run's schedule
    needs a limit and none is set.
    """
    explicit = CHANGEABLE_SETTINGS & config.train.model_fields_set
    changes = {name: getattr(config.train, name) for name in explicit} | _explicit_machine_settings(config)
    train = stored.train.model_copy(update=changes)
    schedule = stored.train.schedule
    if schedule is not None and schedule.needs_length and not train.limited:
        raise ConfigError(
            f"cannot resume {config.out} without a limit: its {schedule.kind} schedule depends on the length of the "
            "run. Set train.max_steps, train.max_epochs or train.max_minutes"
        )
    for name in sorted(explicit):
        previous, current = getattr(stored.train, name), getattr(train, name)
        if previous != current:
            info(f"train.{name} was {_format(previous)} and is now {_format(current)}")
    return stored.model_copy(update={"train": train, "out": config.out})


def _format(value: object) -> str:
    """Format a value as in YAML."""
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def warn_of_rounding(config: RunConfig, stored: RunConfig) -> None:
    """Warn if the run continues with another device, precision or number of threads."""
    previous = {name: getattr(stored.train, name) for name in MACHINE_SETTINGS}
    changed = [
        f"train.{name} was {previous[name]!r} and is now {value!r}"
        for name, value in _explicit_machine_settings(config).items()
        if value != previous[name]
    ]
    if changed:
        warn(
            f"{', '.join(changed)}: sums round differently and dropout may differ, so the result is not bit-identical "
            "to that of an uninterrupted run"
        )


def _explicit_machine_settings(config: RunConfig) -> dict[str, Any]:
    """Return the machine settings that are neither automatic nor unset."""
    values = {name: getattr(config.train, name) for name in MACHINE_SETTINGS}
    return {name: value for name, value in values.items() if value not in ("auto", None)}


def check_same_contents(job: Job, snapshot: TrainingSnapshot) -> None:
    """Raise ConfigError if a corpus or a validation set has changed since the run started."""
    for name, content in job.contents.items():
        if snapshot.state.get(name) != content.fingerprint:
            raise ConfigError(
                f"cannot resume {job.run.out}: {content.name} has changed since the run started. Restore the old "
                "files, or train in another --out"
            )


def check_same_run(config: RunConfig, stored: RunConfig) -> None:
    """Raise ConfigError, naming the settings, if the two runs differ in settings that must not change."""
    current, previous = config.with_stored_choices(stored).model_dump(mode="json"), stored.model_dump(mode="json")
    for name in ("schedule", "dropout_epochs", "head_rate", "validate_every"):  # set automatically if they are null
        if current["train"][name] is None:
            current["train"][name] = previous["train"][name]
    changeable = {"out"} | {f"train.{name}" for name in CHANGEABLE_SETTINGS.union(MACHINE_SETTINGS)}
    different = [
        key
        for key in sorted(set(flatten(current)) | set(flatten(previous)))
        if flatten(current).get(key) != flatten(previous).get(key) and key not in changeable
    ]
    if different:
        shown = ", ".join(
            f"{key} (was {flatten(previous).get(key)!r}, now {flatten(current).get(key)!r})" for key in different[:5]
        )
        raise ConfigError(
            f"cannot resume {config.out} with other settings: {shown}. Use the original settings, or another --out"
        )
