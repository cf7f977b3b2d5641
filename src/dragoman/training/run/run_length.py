"""`RunLength`: the planned length of a run, and the settings that cannot take effect within it."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from math import lcm

from dragoman.training.config import LoopConfig

_INTERVALS = {
    "validate_every": "the model is validated only at the end, so no earlier checkpoint can be selected",
    "checkpoint_every": "an interrupted run can only be resumed from its start",
    "log_every": "log.jsonl has only one line, for the last update",
}
"""Settings that are numbers of updates, with the consequence of an interval that is longer than the run."""


_ENDING = frozenset({"schedule", "patience", "validate_every"})
"""Settings of which at least one was chosen if the end of a run without limits is reported."""


@dataclass(frozen=True)
class RunLength:
    """The planned length of a run.

    updates: the number of updates; None if only `max_minutes` or `patience` limits the run. examples, batches,
    updates_per_epoch: the numbers of examples, batches and updates in an epoch.
    """

    updates: int | None
    examples: int
    batches: int
    updates_per_epoch: int

    def problems(self, config: LoopConfig, chosen: Set[str], depth: int | None = None) -> Iterator[str]:
        """Yield a message for each setting that cannot take effect within the run.

        config: the settings, with all automatic values set. chosen: names of the settings that the user chose. Settings
        with a default value are not reported, except the warm-up, without which nothing is learned. depth: number of
        layers above the lowest that gradual unfreezing trains; None without gradual unfreezing.
        """
        assert config.schedule is not None, "set by `LoopConfig.resolve`"
        yield from self._unfinished_warmup(config, chosen)
        if self.updates is not None:
            yield from self._long_intervals(config, chosen)
            yield from self._unreachable_patience(config)
            yield from self._missing_checkpoints(config, chosen)
            yield from self._unfinished_dropout(config, chosen)
            yield from self._frozen_layers(config, depth)
            yield from config.unfinished_schedules(self.updates)
        if self.batches == 1 and self.examples > 1:
            yield (
                "an epoch is a single batch, so every update reads the whole corpus. Lower data.batch.tokens, or train "
                "on a larger corpus"
            )
        elif "accumulate" in chosen and config.accumulate > self.batches:
            yield (
                f"train.accumulate={config.accumulate:,} is more than the {_count(self.batches, 'batch', 'batches')} "
                "of an epoch, so every update reads the whole corpus. Lower train.accumulate or data.batch.tokens"
            )

    def _unfinished_warmup(self, config: LoopConfig, chosen: Set[str]) -> Iterator[str]:
        assert config.schedule is not None
        warmup = config.schedule.warmup
        if warmup < 1:  # a fraction of the run
            return
        is_chosen = "schedule" in chosen
        name = f"train.schedule.warmup={warmup:g}" if is_chosen else f"the automatic warm-up of {warmup:g} updates"
        if self.updates is not None and warmup > self.updates:
            yield (
                f"{name} is longer than the run of {_count(self.updates)}, so the learning rate reaches only "
                f"{self.updates / warmup:.1%} of its peak. Train for longer, or set train.schedule.warmup to fewer "
                "updates, or to a fraction of the run such as 0.05"
            )
        patience, every = config.patience, config.validate_every
        if (
            config.limited
            or patience is None
            or every is None
            or not chosen & {"schedule", "patience", "validate_every"}
        ):
            return
        if (1 + patience) * every <= warmup:
            yield (
                f"train.patience={patience} can end the run after {_count((1 + patience) * every)}, within the warm-up "
                f"of {warmup:,g}. Raise train.patience or train.validate_every, or shorten train.schedule.warmup"
            )

    def _long_intervals(self, config: LoopConfig, chosen: Set[str]) -> Iterator[str]:
        assert self.updates is not None
        for name, consequence in _INTERVALS.items():
            interval = getattr(config, name)
            if name in chosen and interval > self.updates:
                yield (
                    f"train.{name}={interval:,} is longer than the run of {_count(self.updates)}: {consequence}. "
                    f"Lower train.{name}, or train for longer"
                )

    def _unreachable_patience(self, config: LoopConfig) -> Iterator[str]:
        assert self.updates is not None
        patience, every = config.patience, config.validate_every
        if patience is not None and every is not None and (1 + patience) * every >= self.updates:
            yield (
                f"train.patience={patience} has no effect: early stopping needs {1 + patience} validations, which "
                f"take {(1 + patience) * every:,} updates, and the run ends after {self.updates:,}. Lower "
                "train.patience or train.validate_every, or remove train.patience"
            )

    def _missing_checkpoints(self, config: LoopConfig, chosen: Set[str]) -> Iterator[str]:
        assert self.updates is not None
        count, every, validate_every = config.average.count, config.checkpoint_every, config.validate_every
        if "average" not in chosen or count < 2 or validate_every is None:
            return
        validations = -(-self.updates // validate_every)
        available, setting = validations, "train.validate_every"
        if config.average.of == "last":
            setting = "train.checkpoint_every"
            # every validation can write a checkpoint, too
            common = self.updates // lcm(every, validate_every)
            available = self.updates // every + self.updates // validate_every - common
            available += bool(self.updates % every and self.updates % validate_every)
        if available < count:
            yield (
                f"train.average.count={count} averages more checkpoints than the run of {_count(self.updates)} has: "
                f"at most {available}. Lower train.average.count or {setting}"
            )

    def _unfinished_dropout(self, config: LoopConfig, chosen: Set[str]) -> Iterator[str]:
        assert self.updates is not None
        epochs = self.updates / self.updates_per_epoch
        if "dropout_epochs" in chosen and (config.dropout_epochs or 0) > epochs:
            yield (
                f"train.dropout_epochs={config.dropout_epochs:g} is longer than the run of {epochs:.3g} epochs, so "
                f"dropout reaches only {epochs / (config.dropout_epochs or 1):.1%} of the model's rates. Lower "
                "train.dropout_epochs, or train for longer"
            )

    def _frozen_layers(self, config: LoopConfig, depth: int | None) -> Iterator[str]:
        assert self.updates is not None
        if depth is None or config.unfreeze_every is None:
            return
        epochs = -(-self.updates // self.updates_per_epoch)
        frozen = depth - (epochs - 1) // config.unfreeze_every
        if frozen > 0:
            yield (
                f"train.unfreeze_every={config.unfreeze_every} leaves the lowest {frozen} of {depth + 1} layers frozen "
                f"until the end, because the run has {_count(epochs, 'epoch')} and the last layer is only trained "
                f"from epoch {depth * config.unfreeze_every + 1} on. Lower train.unfreeze_every, or train for longer"
            )


def _count(number: int, unit: str = "update", plural: str = "") -> str:
    return f"{number:,} {unit if number == 1 else plural or unit + 's'}"
