"""The training loop: updates until a limit is reached, with validations and checkpoints at intervals."""

import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace

from torch import Tensor

from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.base.errors import Interrupted
from dragoman.base.interruption import interruption_message
from dragoman.base.log import info, warn
from dragoman.checkpoint.tensors import model_parameters
from dragoman.data.batches.plan import BatchPlan
from dragoman.training.machine.interruption import Interruption, catch_signals
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.profiling.profile import NullProfiler, Profiler
from dragoman.training.progress.horizon import Horizon, step_limit
from dragoman.training.progress.progress import RunProgress
from dragoman.training.progress.report import (
    LOG_FILE,
    NullReporter,
    Reporter,
    RunStatus,
    read_history,
)
from dragoman.training.run.folder import interrupted_message, saved_message, start_message
from dragoman.training.run.result import TrainingResult
from dragoman.training.run.run_clock import RunClock, take_start
from dragoman.training.run.run_length import RunLength
from dragoman.training.run.session import Session, choose_final, keep_saved_model, write_unfinished
from dragoman.training.run.setup import assemble
from dragoman.training.run.snapshot import restore_snapshot, save_snapshot
from dragoman.training.task import Batch, OpenJob, RunConfig
from dragoman.training.updates.captured import DROPOUT_LEVELS
from dragoman.training.updates.sharing import AgreedUpdate, Sharing, Updates
from dragoman.training.updates.update import LaunchedUpdate, Update
from dragoman.training.validation import Validation

_GRACE = 5.0
"""Seconds within which a rank may receive the same signal from the user or cluster and from torchrun."""


def run(config: RunConfig, open_job: OpenJob, resume: bool = False, profile: bool = False) -> TrainingResult:
    """Train a model as configured.

    Under torchrun, every process calls this function. A process that torchrun has restarted resumes the run.

    open_job: creates the run's job. resume: whether to continue from the newest snapshot in `config.out`, if there is
    one. profile: whether to measure how long the parts of the first updates take (see `training.profiling.profile`).

    Raises ConfigError if the folder contains another run, Interrupted after a signal, and DataError, ResourceError and
    DivergenceError.
    """
    begun = take_start()
    with assemble(config, open_job, resume) as session:
        resumed = session.snapshot is not None
        with interruption_message(start_message(session.out, session.ranks.distributed, resumed)):
            loop = _Loop(session, profile, begun)
        try:
            result = loop.run()
        except KeyboardInterrupt:
            with catch_signals() as interruption, interruption.saving():
                start = f"interrupted before the current update was saved; {keep_saved_model(session, loop.progress)}"
            message = saved_message(session.out, session.ranks.distributed, start)
            raise Interrupted(message, signal.SIGINT) from None
        if session.ranks.is_main:
            with interruption_message(f"interrupted: {session.out} contains the final model"):
                session.job.deadline = loop.clock.deadline
                result = replace(result, verdict=session.job.measure(session.out, result.validation))
    info(f"Training ended after {result.step} steps, {loop.clock.describe()}.")  # and is unlocked
    return result


class _Loop:
    def __init__(self, session: Session, profile: bool, begun: float) -> None:
        """begun: time at which the command started, by `time.monotonic`."""
        self.session, self.job, self.ranks = session, session.job, session.ranks
        self.config = session.config
        traced = session.out, session.model, self.ranks.device, self.config.precision
        self.profile = Profiler(*traced) if profile and self.ranks.is_main else NullProfiler()
        session.engine.profile = self.profile
        self.utilisation = None if self.job.is_estimated else session.utilisation()
        assert self.config.schedule is not None, "set by `setup`"
        self.schedule = self.config.schedule
        self._planned: tuple[int, BatchPlan] | None = None
        self._launched: deque[tuple[LaunchedUpdate, RunStatus]] = deque()
        first = self._plan(0)
        self.steps_per_epoch = -(-len(first) // self.job.batches_per_update)
        if not self.job.is_estimated:
            info(f"Batches: {len(first):,} per epoch; {self.job.padding(first)}")
        if session.snapshot is None and self.ranks.is_main and not self.job.is_estimated:
            depth = None if session.unfreezing is None else session.unfreezing.depth
            updates = step_limit(self.config, self.steps_per_epoch)
            length = RunLength(updates, self.job.examples, len(first), self.steps_per_epoch)
            for problem in length.problems(self.config, session.chosen, depth):
                warn(problem)
        contents = self.job.contents
        self.progress = RunProgress(
            Horizon.initial(self.config, self.steps_per_epoch),
            limits=self.config.limits,
            data=contents["data"].fingerprint,
        )
        self._best: Validation | None = None
        """The validation of the best step, if this process has made it."""
        self.clock = RunClock(session, begun, self.progress)
        self._restore()
        self.clock.warn()
        self.progress.valid, self.progress.ranks = contents["valid"].fingerprint, self.ranks.size
        whole, halvings = session.parallel.whole_batches, session.engine.halvings
        batches = self.job.batches_per_update
        self.updates = Updates(self.ranks, Sharing(self.job.lengths, batches, whole, halvings, self.job.tasks))

    def run(self) -> TrainingResult:
        """Train until a limit or a signal ends the run, and choose the final parameters.

        Raises Interrupted after the first signal, and KeyboardInterrupt at the second one.
        """
        progress = self.progress
        with (
            catch_signals(_GRACE) if self.ranks.distributed else catch_signals() as interruption,
            closing(self.profile),
            self._report() as report,
        ):
            if progress.step == 0 or self.session.limits_changed:
                self._save_training(report)
            try:
                with Cancellation().active():  # a signal does not cancel updates
                    self._train(interruption, report)
            except Cancelled:  # in a validation, which is repeated when the run is resumed
                raise self._stop(interruption, interruption.received or signal.SIGINT, report) from None
            with interruption.saving():
                self._save_training(report)
                self.session.prune(progress)
        if (number := self.updates.received_signal(interruption)) is not None:
            raise self._interrupted(number)
        info(f"Last step: {progress.step} ({progress.finished}). Choosing and measuring the model.")
        with catch_signals() as interruption:
            try:
                with self._cancelled_by(interruption):
                    validation, step = choose_final(
                        self.session, progress, self._best, may_average=self.clock.leaves_validation()
                    )
            except Cancelled:
                raise self._interrupted(interruption.received or signal.SIGINT) from None
        if interruption.received and not self.ranks.distributed:
            raise self._interrupted(interruption.received)
        out, reason = self.session.out, progress.finished or ""
        history = read_history(out / LOG_FILE)
        return TrainingResult(out, progress.step, validation, reason, history, self.ranks.is_main, model_step=step)

    def _train(self, interruption: Interruption, report: Reporter) -> None:
        """Make updates until the run is finished, and validate its last step."""
        progress, engine = self.progress, self.session.engine
        if progress.finished is None and self._is_validation_missing():
            self._after_step(interruption, None, report)
        for update in self._updates():
            agreed = self.updates.agree(update, self.clock.seconds, interruption)
            step, epoch = progress.step + 1, progress.epoch + 1
            completed = progress.horizon.progress_at(step)
            rate = self.schedule.rate(step, completed, self.job.model_width)
            point = TrainingPoint(step, completed, self._dropout_fraction(step))
            scale = progress.loss_scale if self.config.precision == "float16" else None
            launched = engine.launch(agreed.update, point, rate, scale)
            self._advance(agreed, launched)
            last = progress.finished is not None
            seconds, tokens = progress.seconds, progress.target_tokens
            status = RunStatus(step, epoch, rate, seconds, tokens, progress.horizon, last)
            self._launched.append((launched, status))
            self._report_launched(report, all_but=int(self.ranks.device.type == "cuda"))
            self._probe_validation(report)
            number = agreed.signal or (None if self.ranks.distributed else interruption.received)
            self._after_step(interruption, number, report)
            self.profile.after_update()
            if progress.finished is not None:
                break
        self._report_launched(report)
        if progress.step not in progress.scores:  # the new limit is below the number of completed steps
            self._validate(interruption, report)
            with interruption.saving():
                self._checkpoint(report)

    def _updates(self) -> Iterator[Update]:
        """Yield the updates of one epoch after another, from the current position of the run."""
        progress = self.progress

        def load(plan: BatchPlan, start: int) -> Iterable[Batch]:
            pin = self.session.engine.runtime.device.type == "cuda"
            return self.job.batches(plan, start, progress.epoch, pin)

        while progress.finished is None:
            plan = self._plan(progress.epoch)
            if self.session.unfreezing is not None:
                self.session.unfreezing.apply(progress.epoch)
            yield from self.profile.batches(self.updates.iterate(plan, progress.batch, load))

    def _report_launched(self, report: Reporter, all_but: int = 0) -> None:
        """Report updates, except the last ones, which a GPU computes meanwhile. Raises DivergenceError."""
        while len(self._launched) > all_but:
            launched, status = self._launched.popleft()
            result = launched.result()
            self.progress.watch.check(status.step, result)
            report.step(result, status)

    def _advance(self, agreed: AgreedUpdate, launched: LaunchedUpdate) -> None:
        """Move the position of the run past an update, and decide whether a limit has been reached."""
        progress = self.progress
        step = progress.step + 1
        if self.session.average is not None:
            self.session.average.update(step)
        progress.step = step
        progress.batch += agreed.update.count
        if progress.batch == len(self._plan(progress.epoch)):
            progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.target_tokens += launched.target_tokens
        self._tick(agreed.seconds)
        progress.horizon = progress.horizon.refit(
            self.clock.update_limits, self.steps_per_epoch, step, progress.seconds, self.session.journal
        )
        progress.finished = self.clock.limit_reached()

    def _cancelled_by(self, interruption: Interruption) -> AbstractContextManager[None]:
        """Return a context in which a signal cancels validations, except in a run with several processes."""
        return (Cancellation() if self.ranks.distributed else interruption.cancellation).active()

    def _is_validation_missing(self) -> bool:
        """Return whether the run was interrupted in the validation of its current step."""
        return self.clock.is_validation_due() and self.progress.step not in self.progress.scores

    def _report(self) -> Reporter:
        progress, every = self.progress, self.config.log_every
        if not self.ranks.is_main:
            return NullReporter(progress.unlogged)
        folder, size = self.session.out, self.ranks.size
        shown = every if self.config.validate_every == 1 else 1
        return Reporter(
            folder,
            every,
            progress.step,
            unlogged=progress.unlogged,
            utilisation=self.utilisation,
            ranks=size,
            unit=self.job.unit,
            shown_every=shown,
        )

    def _dropout_fraction(self, step: int) -> float:
        """Return a fraction that rises from 0 to 1 during `dropout_epochs` (Morerio et al. 2017, "Curriculum Dropout").

        It rises in few steps if passes are recorded as graphs that contain the rates.
        """
        steps = (self.config.dropout_epochs or 0.0) * self.steps_per_epoch
        fraction = min(1.0, (step - 1) / steps) if steps else 1.0
        captured = self.session.engine.captured
        has_levels = captured is not None and captured.has_dropout_levels
        return round(fraction * DROPOUT_LEVELS) / DROPOUT_LEVELS if has_levels else fraction

    def _after_step(self, interruption: Interruption, number: int | None, report: Reporter) -> None:
        progress, config = self.progress, self.config
        intervals = config.validate_every, config.checkpoint_every
        if number is not None or progress.finished or any(each and progress.step % each == 0 for each in intervals):
            self._report_launched(report)
        if progress.finished or self.clock.is_validation_due():
            with self.profile.separate("validation"):
                self._validate(interruption, report)
            progress.finished = progress.finished or self._patience_exhausted()
        if progress.step % config.checkpoint_every == 0 or progress.finished:
            with self.profile.separate("checkpoint"), interruption.saving():
                self._checkpoint(report)
        if number is not None and progress.finished is None:
            raise self._stop(interruption, number, report)

    def _stop(self, interruption: Interruption, number: int, report: Reporter) -> Interrupted:
        """Save the run and, before its first validation, the current model. Return the error to raise."""
        with interruption.saving():
            self._save_training(report)
            if self.progress.best_step is None:
                write_unfinished(self.session, self.progress, self._parameters(), self.progress.step)
        return self._interrupted(number)

    def _interrupted(self, signal_number: int) -> Interrupted:
        step, best = self.progress.step, self.progress.best_step
        return Interrupted(interrupted_message(self.session.out, self.ranks.distributed, step, best), signal_number)

    def _patience_exhausted(self) -> str | None:
        waited, patience = self.progress.waited, self.config.patience
        return f"{waited} validations without improvement" if patience is not None and waited >= patience else None

    def _validate(self, interruption: Interruption, report: Reporter) -> None:
        """Validate, and save a better model. Raises Cancelled if a signal arrives during the validation."""
        progress, started = self.progress, time.monotonic()
        with self._loaded_parameters(), self._cancelled_by(interruption):
            validation = self.session.validate(progress.step)
        self.clock.note_validation(time.monotonic() - started)
        joint = [validation[key].merit for key in self.config.joint_metrics]
        better = progress.add_score(validation.rank(self.config.metric), joint)
        self._tick()
        position = {"step": progress.step, "epoch": progress.epoch + 1, "seconds": progress.seconds}
        report.validation(validation, position, better)
        if better:
            self._best = validation
            with interruption.saving():
                self._write_checkpoint(validation)
                write_unfinished(self.session, progress, self._parameters(), progress.step, validation)

    def _checkpoint(self, report: Reporter) -> None:
        """Write a snapshot to resume from and a model folder for averaging, and remove obsolete ones."""
        if self.ranks.broadcast(not self.session.store.checkpoint_folder(self.progress.step).exists()):
            self._write_checkpoint(None)
        self._save_training(report)
        self.session.prune(self.progress)

    def _write_checkpoint(self, validation: Validation | None) -> None:
        folder = self.session.store.checkpoint_folder(self.progress.step)
        self.session.write_model(folder, self._parameters(), self.progress.step, validation)

    def _save_training(self, report: Reporter) -> None:
        self._tick()
        report.sync()
        started = time.monotonic()
        save_snapshot(self.session, self.progress)
        self.clock.note_snapshot(time.monotonic() - started)
        report.resume_clock()

    def _restore(self) -> None:
        snapshot = self.session.snapshot
        if snapshot is None:
            self.progress.finished = self.clock.limit_reached() if self.job.is_estimated else None
            return
        restore_snapshot(self.session, snapshot)
        self.progress = RunProgress.from_json(snapshot.state)
        self.clock.restore(self.progress)
        if self.session.limits_changed:
            self.progress.limits = self.config.limits
            self.progress.horizon = Horizon.initial(self.config, self.steps_per_epoch).after_change(
                self.clock.update_limits, self.progress.step, self.progress.seconds
            )
        if self.session.limits_changed or self.progress.finished is not None:
            self.progress.finished = self.clock.limit_reached() or self._patience_exhausted()
        if self.session.limits_changed and self.progress.finished is not None:
            warn(
                f"nothing is left to train: the run already has {self.progress.step:,} updates, and with the new "
                f"limits it has ended ({self.progress.finished}). Raise the limit to train further"
            )
        if self.progress.finished is None:  # the model of a run that had ended is no longer its last one
            self.session.mark_unfinished(self.session.out, self.progress.horizon)
        info(f"Resuming at step {self.progress.step}, epoch {self.progress.epoch}.")
        if self.progress.ranks != self.ranks.size:
            warn(
                f"the run was trained by {self.progress.ranks} process(es) and continues with {self.ranks.size}: sums "
                "round differently and dropout may differ, so the result is not bit-identical to that of an "
                "uninterrupted run"
            )

    def _parameters(self) -> dict[str, Tensor]:
        """Return the tensors to validate and save: the parameters, or their moving average if there is one, and the
        buffers.
        """
        tensors = {name: value.detach() for name, value in model_parameters(self.session.model).items()}
        return self.session.parallel.gather(
            tensors if self.session.average is None else tensors | self.session.average.shadow
        )

    @contextmanager
    def _loaded_parameters(self) -> Iterator[None]:
        """Use the tensors of `_parameters` in the validated model within this context."""
        average, parallel = self.session.average, self.session.parallel
        if parallel.sharded:
            parallel.load(self._parameters())
        try:
            with nullcontext() if average is None or parallel.sharded else average.swapped_in():
                yield
        finally:
            parallel.release()

    def _probe_validation(self, report: Reporter) -> None:
        """Measure how long a validation takes if the time limit requires it."""
        if not self.clock.requires_probe():
            return
        self._report_launched(report)
        with self._loaded_parameters():
            seconds = self.session.estimate_validation()
        if seconds is not None:
            self.clock.note_validation(seconds)

    def _tick(self, seconds: float | None = None) -> None:
        """Update the elapsed time.

        seconds: time of the first rank's clock, so that all ranks make the same decisions; None: use this rank's clock.
        """
        self.progress.seconds = self.clock.seconds() if seconds is None else seconds

    def _plan(self, epoch: int) -> BatchPlan:
        if self._planned is None or self._planned[0] != epoch:
            self._planned = epoch, self.job.plan(epoch)
        return self._planned[1]
