"""`Session`: the objects of a run that the training loop uses."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from dragoman.base.errors import ResourceError
from dragoman.base.log import info, warn
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.checkpoint.average import average_parameters
from dragoman.checkpoint.folder import META, mark_unfinished
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.checkpoint.tensors import load_tensors
from dragoman.training.config import LoopConfig
from dragoman.training.machine.compilation import uncompiled
from dragoman.training.machine.journal import Journal
from dragoman.training.optimisers.average import ParameterAverage
from dragoman.training.optimisers.layers import GradualUnfreezing
from dragoman.training.profiling.utilisation import Utilisation, measure_rate
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import RunProgress
from dragoman.training.ranks.parallel import SingleProcess
from dragoman.training.ranks.ranks import Ranks
from dragoman.training.task import Job, TimedValidator, Validator
from dragoman.training.updates.engine import Engine
from dragoman.training.validation import Validation


@dataclass(frozen=True)
class Session:
    """A run that is ready to start or to continue.

    model: the module to train. unfreezing: selects the layers that an epoch trains; None for all layers. average: the
    moving average of the parameters, or None. snapshot: the snapshot to resume from, or None. limits_changed: whether
    the snapshot was written with other limits. chosen: names of the settings of `train` that the user chose.
    """

    job: Job
    model: nn.Module
    engine: Engine
    unfreezing: GradualUnfreezing | None
    average: ParameterAverage | None
    validator: Validator
    store: CheckpointStore
    snapshot: TrainingSnapshot | None
    limits_changed: bool
    chosen: Set[str] = frozenset()

    @property
    def config(self) -> LoopConfig:
        """The settings of the training loop."""
        return self.job.run.train  # type: ignore[no-any-return]

    @property
    def out(self) -> Path:
        """The run's folder."""
        return self.job.run.out  # type: ignore[no-any-return]

    @property
    def journal(self) -> Journal:
        """The record of the run's decisions that depend on the clock or on measurements."""
        return self.engine.journal

    @property
    def ranks(self) -> Ranks:
        """The processes of the run."""
        return self.engine.runtime.ranks

    @property
    def parallel(self) -> SingleProcess:
        """The strategy that distributes the model over the processes."""
        return self.engine.parallel

    def validate(self, step: int) -> Validation:
        """Validate the current model of `parallel`. Raises ResourceError if there is not enough memory."""
        try:
            with uncompiled(self.config.compile):
                self.engine.model.eval()
                return self.validator.run(self.engine.runtime)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory to validate at step {step}: remove the longest examples from "
                f"{self.job.contents['valid'].name}, or lower data.length or train.validation_beam, whichever the task "
                "has"
            ) from None

    def estimate_validation(self) -> float | None:
        """Return how long `validate` takes, in seconds, measured on some examples; None if the task cannot tell."""
        if not isinstance(self.validator, TimedValidator):
            return None
        with uncompiled(self.config.compile):
            self.engine.model.eval()
            return self.validator.estimate_seconds()

    def write_model(
        self,
        folder: Path,
        parameters: dict[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
        *,
        unfinished: Horizon | None = None,
    ) -> None:
        """Write parameters as a model folder of this run. validation: the validation of these parameters, or None.

        The first rank writes the folder, and the others wait for it. unfinished: the planned length of the run if it
        has not ended, which is recorded in the folder.
        """
        if self.ranks.is_main:
            self.job.write(folder, parameters, step, validation, averaged_steps)
            if unfinished is not None:
                self.mark_unfinished(folder, unfinished)
        self.ranks.wait()

    def mark_unfinished(self, folder: Path, horizon: Horizon) -> None:
        """Record in a model folder, if there is one, that the run has not ended. The first rank does so."""
        if self.ranks.is_main and (folder / META).is_file():  # a task may write a folder of another kind
            mark_unfinished(folder, None if horizon.assumed else horizon.end)

    def utilisation(self) -> Utilisation | None:
        """Return the FLOPs per token and the measured speed of this device; None if the FLOPs are unknown."""
        flops, runtime = self.job.flops_per_target_token(), self.engine.runtime
        return Utilisation(flops, measure_rate(runtime.device, runtime.precision), self.ranks.size) if flops else None

    def prune(self, progress: RunProgress) -> None:
        """Remove checkpoints that are not needed for averaging or for later comparisons."""
        if not self.ranks.is_main:
            return
        average = self.config.average
        paths = self.store.checkpoints()
        keep = set(paths[-max(1, average.count) :])
        best = average.count if average.of == "best" else 1
        steps = progress.ranked()[: max(1, best)] + [step for step in [progress.best_step] if step is not None]
        keep |= {self.store.checkpoint_folder(step) for step in steps}
        self.store.prune(keep)


def write_unfinished(
    session: Session,
    progress: RunProgress,
    parameters: dict[str, Tensor],
    step: int,
    validation: Validation | None = None,
) -> None:
    """Write a model to the run's folder, and record in it that the run has not ended."""
    session.write_model(session.out, parameters, step, validation, unfinished=progress.horizon)


def keep_saved_model(session: Session, progress: RunProgress) -> str:
    """Write the model of the newest snapshot of a run that was ended during an update, unless it has a validated model.

    Returns what the user can continue with.
    """
    if progress.best_step is not None or session.ranks.distributed:
        return "the last checkpoint is kept"
    snapshot = session.store.latest_training()
    if snapshot is None or snapshot.step == 0:
        return "no update was saved yet"
    tensors = snapshot.tensors
    write_unfinished(session, progress, tensors["model"] | tensors.get("average", {}), snapshot.step)
    return f"{session.out} contains the model of step {snapshot.step}, not validated yet"


def choose_final(
    session: Session, progress: RunProgress, validated: Validation | None = None, *, may_average: bool = True
) -> tuple[Validation, int]:
    """Write the best checkpoint, or the mean of several if it is better on validation, to the run's folder.

    validated: the validation of the best checkpoint; None if an earlier process made it, so that it must be repeated.
    may_average: whether the time limit of the run leaves time to validate the mean.
    Returns the validation of what was written and its step, which is the last one of several checkpoints.
    """
    config = session.config
    assert progress.best_step is not None
    best = session.store.checkpoint_folder(progress.best_step)
    parameters, _ = load_tensors(best / "model.safetensors")
    validation = validated or _validate_parameters(session, parameters, progress.step)
    step = progress.best_step
    steps: tuple[int, ...] = ()
    chosen = f"the checkpoint of step {progress.best_step}"
    paths = session.store.checkpoints()
    if config.average.of == "best":
        paths = [path for step in progress.ranked() if (path := session.store.checkpoint_folder(step)).exists()][::-1]
    paths = paths[-config.average.count :] if config.average.count else []
    paths = [Path(path) for path in session.ranks.broadcast(list(map(str, paths)))]
    if len(paths) > 1 and not may_average:
        info(f"Left out because train.max_minutes leaves too little time: the mean of {len(paths)} checkpoints")
    elif len(paths) > 1:
        mean = average_parameters(paths)
        averaged = _validate_parameters(session, mean, progress.step)
        info(f"Mean of {len(paths)} checkpoints: validation {averaged.brief()}; {chosen}: {validation.brief()}")
        if averaged.rank(config.metric) >= validation.rank(config.metric):
            parameters, validation = mean, averaged
            steps = tuple(int(path.name.removeprefix("step-")) for path in paths)
            step = max(steps)
            chosen = f"the mean of the {config.average.of} {len(paths)} checkpoints"
    session.write_model(session.out, parameters, step, validation, steps)
    warn_of_ties(progress.scores, validation, config.metric)
    info(f"{session.out} contains {chosen}")
    return validation, step


def warn_of_ties(scores: Mapping[int, Sequence[float]], validation: Validation, metric: str) -> None:
    """Warn if all validations of a run have the same score by `metric`, so that another metric decided."""
    first, *others = validation.deciding(metric)
    if len(scores) > 1 and others and len({score[0] for score in scores.values()}) == 1:
        warn(
            f"{first.name} was {first.value:.{first.digits}f} in all {len(scores)} validations, so {others[0].name} "
            f"decided which checkpoint is the best. To select it by another metric, set train.metric={others[0].key}"
        )


def _validate_parameters(session: Session, parameters: Mapping[str, Tensor], step: int) -> Validation:
    session.parallel.load(parameters)
    return session.validate(step)
