"""`Session`: everything that the loop of a run works with."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from dragoman.base.errors import ResourceError
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.training.config import LoopConfig
from dragoman.training.machine.compilation import uncompiled
from dragoman.training.machine.journal import Journal
from dragoman.training.optimisers.average import ParameterAverage
from dragoman.training.profiling.utilisation import Utilisation, measure_rate
from dragoman.training.progress.progress import Progress
from dragoman.training.ranks.interface import Ranks
from dragoman.training.ranks.parallel import Alone
from dragoman.training.task import Job, Validator
from dragoman.training.updates.engine import Engine
from dragoman.training.validation import Validation


@dataclass(frozen=True)
class Session:
    """A run that is ready to go on.

    model: what is trained; average: the moving average of its parameters, if there is one. snapshot: where to go on
    from, or None; limits_changed: whether it was made under other limits.
    """

    job: Job
    model: nn.Module
    engine: Engine
    average: ParameterAverage | None
    validator: Validator
    store: CheckpointStore
    snapshot: TrainingSnapshot | None
    limits_changed: bool

    @property
    def config(self) -> LoopConfig:
        """The settings of the loop."""
        return self.job.run.train  # type: ignore[no-any-return]

    @property
    def out(self) -> Path:
        """The run's folder."""
        return self.job.run.out  # type: ignore[no-any-return]

    @property
    def journal(self) -> Journal:
        """What the run has decided by the clock or by measuring."""
        return self.engine.journal

    @property
    def ranks(self) -> Ranks:
        """The processes that train."""
        return self.engine.place.ranks

    @property
    def parallel(self) -> Alone:
        """How they hold the model."""
        return self.engine.parallel

    def validate(self, step: int) -> Validation:
        """Judge the model that `parallel` shows. Raises ResourceError where that does not fit the memory."""
        try:
            with uncompiled(self.config.compile):
                self.engine.model.eval()
                return self.validator.run(self.engine.place)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory to validate at step {step}: leave the longest examples out of "
                f"{self.job.contents['valid'].name}, or lower train.validation_beam where there is one"
            ) from None

    def write_model(
        self,
        folder: Path,
        parameters: dict[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write parameters as a model folder of this run; validation: what they reached, if they were judged.

        Only the first rank writes; the others wait until it has.
        """
        if self.ranks.first:
            self.job.write(folder, parameters, step, validation, averaged_steps)
        self.ranks.wait()

    def utilisation(self) -> Utilisation | None:
        """What an update's products cost, and what this device gives, measured now; None where the cost is unknown."""
        flops, place = self.job.flops_per_target_token(), self.engine.place
        return Utilisation(flops, measure_rate(place.device, place.precision), self.ranks.size) if flops else None

    def prune(self, progress: Progress) -> None:
        """Remove checkpoints that neither averaging nor a later comparison needs."""
        if not self.ranks.first:
            return
        average = self.config.average
        paths = self.store.checkpoints()
        keep = set(paths[-max(1, average.count) :])
        best = average.count if average.of == "best" else 1
        keep |= {self.store.checkpoint_folder(step) for step in progress.ranked()[: max(1, best)]}
        self.store.prune(keep)
