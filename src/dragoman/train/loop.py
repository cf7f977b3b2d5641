"""The training loop: one pass after another until a limit is reached, with validations and checkpoints on the way."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from dragoman.base.log import info, warn
from dragoman.checkpoint.folder import model_parameters
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan, plan_epoch
from dragoman.data.batches.resampling import Resampler
from dragoman.train.config import RunConfig
from dragoman.train.finish import choose_final
from dragoman.train.horizon import Horizon
from dragoman.train.interruption import Interrupted, Interruption, interruption
from dragoman.train.parts import Parts
from dragoman.train.profiling.profile import NoProfile, Profile
from dragoman.train.progress import Progress
from dragoman.train.ranks.updates import Updates
from dragoman.train.report import Report
from dragoman.train.setup import assemble
from dragoman.train.silence import Silence
from dragoman.train.snapshot import restore_snapshot, save_snapshot
from dragoman.train.validation.validator import Validation

_GRACE = 5.0
"""Seconds in which a rank may get the same signal from a user or a cluster and from torchrun."""


@dataclass(frozen=True)
class TrainingResult:
    """folder: the model folder; step: updates made; validation: of the parameters in it; reason: why the run ended.

    first: False in all but one of several processes.
    """

    folder: Path
    step: int
    validation: Validation
    reason: str
    first: bool = True


def run(config: RunConfig, resume: bool = False, profile: bool = False) -> TrainingResult:
    """Train as `config` says. With `resume`, go on from the newest snapshot in `config.out`, if there is one.

    Under torchrun this is one of several processes; one that torchrun has restarted resumes.

    profile: say where the time of the first updates goes, see `train.profiling.profile`.

    Raises ConfigError for a folder that holds another run, Interrupted after a signal, and the errors of the parts.
    """
    with assemble(config, resume) as parts:
        return _Loop(parts, profile).run()


class _Loop:
    def __init__(self, parts: Parts, profile: bool) -> None:
        self.parts, self.ranks = parts, parts.ranks
        self.config = parts.config.train
        self.profile = NoProfile()
        if profile and self.ranks.first:
            self.profile = Profile(parts.config.out, parts.model, parts.engine.device, self.config.precision)
        parts.engine.profile = self.profile
        self.utilisation = parts.utilisation()
        assert self.config.schedule is not None, "setup chooses one where none is set"
        self.schedule = self.config.schedule
        self.dataset = parts.prepared.dataset
        longest = tuple(limit.tokens for limit in parts.model.limits)
        self.resampler = Resampler(parts.prepared.tokenizers, self.config.seed, longest)
        self._planned: tuple[int, BatchPlan] | None = None
        first = self._plan(0)
        self.steps_per_epoch = -(-len(first) // self.config.accumulate)
        source, target = first.padding_waste
        info(f"Batches: {len(first):,} an epoch; padding is {source:.1%} of the source and {target:.1%} of the target")
        self.progress = Progress(
            Horizon.first(self.config, self.steps_per_epoch), limits=self.config.limits, data=self.dataset.fingerprint
        )
        self._restore()
        self.progress.valid, self.progress.ranks = parts.valid, self.ranks.size
        self.updates = Updates(
            self.ranks, parts.parallel, self.dataset.lengths, self.config.accumulate, parts.engine.halvings
        )
        self._started = time.monotonic() - self.progress.seconds

    def run(self) -> TrainingResult:
        """Train until something ends it, then choose the final parameters."""
        progress = self.progress
        with (
            interruption(_GRACE if self.ranks.several else 0.0) as request,
            closing(self.profile),
            closing(self.resampler),
            self._report() as report,
        ):
            if progress.step == 0 or self.parts.limits_changed:
                self._save_training(report)
            while progress.finished is None:
                self._epoch(request, report)
            if progress.step not in progress.scores:  # a limit was lowered to a step that is over
                self._validate(report)
                self._checkpoint(report)
            self._save_training(report)
            self.parts.prune(progress)
        if (signal := self.updates.heard(request)) is not None:
            raise self._interrupted(signal)
        info(f"Training ended after {progress.step} steps, {progress.seconds / 60:.1f} minutes: {progress.finished}.")
        validation = choose_final(self.parts, progress)
        return TrainingResult(self.parts.config.out, progress.step, validation, progress.finished, self.ranks.first)

    def _report(self) -> Report:
        progress, every = self.progress, self.config.log_every
        if not self.ranks.first:
            return Silence(progress.unlogged)
        folder, size = self.parts.config.out, self.ranks.size
        return Report(folder, every, progress.step, progress.unlogged, self.utilisation, size)

    def _epoch(self, request: Interruption, report: Report) -> None:
        progress, config = self.progress, self.config
        plan = self._plan(progress.epoch)
        resampler = self.resampler if self.parts.config.text.subword.resampling else None

        def load(plan: BatchPlan, start: int) -> Loader:
            pin = self.parts.engine.device.type == "cuda"
            return Loader(self.dataset, plan, start, resampler, progress.epoch, pin)

        for update in self.profile.batches(self.updates.of(plan, progress.batch, load)):
            agreed = self.updates.agree(update, self._clock, request)
            step = progress.step + 1
            done = progress.horizon.progress_at(step)
            rate = self.schedule.rate(step, done, self.parts.config.model.width)
            ratio = config.teacher_forcing.ratio(step, done)
            result = self.parts.engine.step(step, update.batches, rate, ratio, update.parts, agreed.tokens)
            progress.watch.check(step, result)
            if self.parts.average is not None:
                self.parts.average.update()
            epoch = progress.epoch + 1
            progress.step = step
            progress.batch += update.count
            if progress.batch == len(plan):
                progress.epoch, progress.batch = progress.epoch + 1, 0
            progress.target_tokens += result.target_tokens
            self._tick(agreed.seconds)
            progress.horizon = progress.horizon.fitted(
                config, self.steps_per_epoch, step, progress.seconds, self.parts.decisions
            )
            progress.finished = self._limit_reached()
            last = progress.finished is not None
            report.step(step, epoch, result, rate, progress.seconds, progress.target_tokens, progress.horizon, last)
            self._after_step(agreed.signal or (None if self.ranks.several else request.received), report)
            self.profile.stepped()
            if progress.finished is not None:
                return

    def _after_step(self, signal: int | None, report: Report) -> None:
        progress, config = self.progress, self.config
        if progress.step % config.validate_every == 0 or progress.finished:
            with self.profile.beside("validation"):
                self._validate(report)
            progress.finished = progress.finished or self._patience_over()
        if progress.step % config.checkpoint_every == 0 or progress.finished:
            with self.profile.beside("checkpoint"):
                self._checkpoint(report)
        if signal is not None and progress.finished is None:
            self._save_training(report)
            raise self._interrupted(signal)

    def _interrupted(self, signal_number: int) -> Interrupted:
        return Interrupted(
            f"interrupted at step {self.progress.step}; everything is saved. Go on with the same command and --resume",
            signal_number,
        )

    def _patience_over(self) -> str | None:
        waited, patience = self.progress.waited, self.config.patience
        return f"{waited} validations brought nothing better" if patience is not None and waited >= patience else None

    def _limit_reached(self) -> str | None:
        progress, config = self.progress, self.config
        if config.max_steps is not None and progress.step >= config.max_steps:
            return f"train.max_steps={config.max_steps} reached"
        if config.max_epochs is not None and progress.epoch >= config.max_epochs:
            return f"train.max_epochs={config.max_epochs} reached"
        if config.max_minutes is not None:
            late = progress.seconds >= config.max_minutes * 60 or progress.step >= (progress.horizon.end or 0) > 0
            # Written down because it came from the clock: a run resumed from before it stops there, and not earlier.
            stop = self.parts.decisions.make("stop", 0, lambda: progress.step if late else None)
            if stop is not None and progress.step >= stop:
                return f"train.max_minutes={config.max_minutes:g} reached"
        return None

    def _validate(self, report: Report) -> None:
        progress = self.progress
        with self._averaged():
            validation = self.parts.validate(progress.step)
        better = progress.validated(validation.measure(self.config.metric))
        self._tick()
        line = {
            "step": progress.step,
            "epoch": progress.epoch + 1,
            **validation.log_line(),
            "seconds": progress.seconds,
        }
        report.validation(line, better)
        if better:
            self._write_checkpoint(validation)
            self.parts.write_model(self.parts.config.out, self._parameters(), progress.step, validation)

    def _checkpoint(self, report: Report) -> None:
        """A snapshot to go on from, and a model folder for averaging; older ones that nobody needs are removed."""
        if self.ranks.tell(not self.parts.store.checkpoint_folder(self.progress.step).exists()):
            self._write_checkpoint(None)
        self._save_training(report)
        self.parts.prune(self.progress)

    def _write_checkpoint(self, validation: Validation | None) -> None:
        folder = self.parts.store.checkpoint_folder(self.progress.step)
        self.parts.write_model(folder, self._parameters(), self.progress.step, validation)

    def _save_training(self, report: Report) -> None:
        self._tick()
        report.sync()
        save_snapshot(self.parts, self.progress)
        report.resume_clock()

    def _restore(self) -> None:
        snapshot = self.parts.snapshot
        if snapshot is None:
            return
        restore_snapshot(self.parts, snapshot)
        self.progress = Progress.from_json(snapshot.state)
        if self.parts.limits_changed:
            self.progress.limits = self.config.limits
            self.progress.horizon = Horizon.first(self.config, self.steps_per_epoch).joined(
                self.config, self.progress.step, self.progress.seconds
            )
        if self.parts.limits_changed or self.progress.finished is not None:
            self.progress.finished = self._limit_reached() or self._patience_over()
        info(f"Resuming at step {self.progress.step}, epoch {self.progress.epoch}.")
        if self.progress.ranks != self.ranks.size:
            warn(
                f"{self.progress.ranks} processes trained this far, now {self.ranks.size} go on: sums are rounded "
                "otherwise, and dropout may differ, so the result is not that of an uninterrupted run bit for bit"
            )

    def _parameters(self) -> dict[str, Tensor]:
        """What is validated and kept: the moving average if there is one, else the parameters; buffers as they are."""
        tensors = {name: value.detach() for name, value in model_parameters(self.parts.model).items()}
        return self.parts.parallel.whole(tensors if self.parts.average is None else tensors | self.parts.average.shadow)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        average, parallel = self.parts.average, self.parts.parallel
        if parallel.sharded:
            parallel.show(self._parameters())
        with nullcontext() if average is None or parallel.sharded else average.in_place():
            yield
        parallel.hide()

    def _tick(self, seconds: float | None = None) -> None:
        """seconds: of the first rank's clock, where all must decide by the same."""
        self.progress.seconds = self._clock() if seconds is None else seconds

    def _clock(self) -> float:
        return time.monotonic() - self._started

    def _plan(self, epoch: int) -> BatchPlan:
        if self._planned is None or self._planned[0] != epoch:
            batch, prepared = self.parts.config.data.batch, self.parts.prepared
            self._planned = epoch, plan_epoch(self.dataset.lengths, batch, self.config.seed, epoch, prepared.parts)
        return self._planned[1]
