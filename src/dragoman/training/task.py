"""The interface between the training loop and a task.

A `Task` is a config whose `kind` selects the run class and the `Job` class (`tasks.registry`). The job prepares
examples, builds a model, and defines the loss, the validation and the content of a model folder. The loop minimises
this loss on the job's batches and is otherwise independent of the task.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta, RecordedScore
from dragoman.checkpoint.start import Start
from dragoman.checkpoint.verdict import Verdict
from dragoman.data.batches.plan import BatchConfig, BatchPlan
from dragoman.data.held_out.check import Finding
from dragoman.models.parts import count_parameters
from dragoman.text.tokenizers import Tokenizers, VocabularySizes
from dragoman.training.config import LoopConfig
from dragoman.training.objectives.objective import Objective
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation


class Batch(Protocol):
    """Examples as tensors.

    task: name of the examples' task if the run has several tasks. target_tokens: number of tokens, or of other
    predicted units, that the loss is summed over. rows: row numbers of the examples in the corpus.
    """

    @property
    def task(self) -> str: ...

    @property
    def target_tokens(self) -> int: ...

    @property
    def rows(self) -> tuple[int, ...]: ...

    def to(self, device: torch.device) -> Self:
        """Return the batch with its tensors on `device`."""
        ...

    def split(self, count: int) -> list[Self]:
        """Split into `count` parts with about equal numbers of examples, or fewer if there are fewer examples."""
        ...


class Validator(Protocol):
    """Validates a model on held-out examples."""

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model. If there are several ranks, they share the examples, and all return the result."""
        ...


@runtime_checkable
class TimedValidator(Protocol):
    """A validator that can tell how long a validation takes, which a time limit takes into account."""

    def estimate_seconds(self) -> float:
        """Return how long `run` takes, in seconds, measured on some examples."""
        ...


_DELAYS, _LONGEST_DELAY = 0.05, 60.0
"""Fraction of a time limit, and number of seconds, that is reserved for what takes longer than expected."""


class Task(Config):
    """Base class of task configs. A new task subclasses `Task`, `RunConfig` and `Job`."""

    kind: str


IMPORTS = (
    "Modules that register own parts, such as a scorer, before the recipe is read: files (`own.py`) or names in Python "
    "(`package.module`)."
)
"""The description of the setting `imports`."""


class RunConfig(Config):
    """A training run: the top level of a recipe. Each task has a subclass that adds the sections it needs."""

    task: Task = Field(description="Task to learn.")
    imports: tuple[str, ...] = Field((), description=IMPORTS)
    train: LoopConfig = Field(LoopConfig(), description="Training loop.")
    out: Path = Field(description="Folder of the run; at the end of training, it is a model folder.")
    seeds: int = Field(
        1,
        ge=1,
        description="Number of runs with different seeds: train.seed, train.seed + 1, …. Several runs are written to "
        "the folders seed-N of `out`, and the means and standard deviations of their validation scores are reported.",
    )
    grid: dict[str, list[Any]] = Field(
        {},
        description="Values to try of some settings, such as {train.schedule.peak: [0.001, 0.002]}: one run, or one "
        "per seed, for each combination, in a folder of `out` that is named after the values. The corpus is prepared "
        "once if the combinations do not change it. `dragoman compare` compares the runs on a test set.",
    )

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with the settings that depend on the data copied from the stored run.

        By default, these are the choices of the section `data`.
        """
        data: Any = getattr(self, "data", None)
        if not hasattr(data, "with_stored_choices"):
            return self
        other: Any = stored
        return self.model_copy(update={"data": data.with_stored_choices(other.data)})


@dataclass(frozen=True)
class Content:
    """Data that must be unchanged when a run is resumed. name: name in messages; fingerprint: hash of the content."""

    name: str
    fingerprint: str


class Job(ABC):
    """The task of one run. `prepare` is called first, then `build`, then the other methods.

    run: the settings; `prepare` sets the ones that depend on the data. start: the model of `train.start`, or None.
    notes: results of `initialise` that are stored with the run. tasks: names of the tasks whose batches are mixed in an
    update; a single empty name if there is only one task. unit: name of the units over which the loss is a mean.
    has_batch_shapes: whether batches have `BatchShapes`: they may be packed, if the model can, and rounded in shape.
    deadline: time at which the time limit of the run ends, by `time.monotonic`, for `measure`; None without a limit.
    """

    run: Any
    notes: Mapping[str, float]
    deadline: float | None
    tasks: tuple[str, ...] = ("",)
    unit: str = "target tokens"
    has_batch_shapes: ClassVar[bool] = False
    _dumped: tuple[Any, str] = (None, "")

    def __init__(self, run: Any, start: Start | None = None) -> None:
        """start: the model of `train.start`, if it is already loaded."""
        self.run, self.notes, self.deadline = run, {}, None
        self.start = start
        if start is None and run.train.start is not None:
            self.start = Start.load(run.train.start, run.train.start_parts)

    @property
    def tokenizers(self) -> Tokenizers | None:
        """The tokenizers of the examples; None for a task without text. By default, those of the initial model."""
        return None if self.start is None else self.start.loaded.text

    # Before the loop:

    def check_initial_values(self) -> None:  # noqa: B027
        """Check the files that `initialise` will read, if any, before the slow `prepare`."""

    def check_held_out(self) -> Iterator[Finding]:
        """Yield the problems of the held-out examples, such as those that are also training examples.

        Called before `prepare`, for new runs and on the first rank only.
        """
        yield from ()

    @abstractmethod
    def prepare(self) -> None:
        """Prepare the examples, which may be slow, and set the settings in `run` that depend on them."""

    def build(self) -> nn.Module:
        """Build a model, initialised from torch's default generator.

        By default, the model is built from the `model` section for the vocabularies of the examples. Raises ConfigError
        if the model cannot process the examples.
        """
        sizes = VocabularySizes(0, 0) if self.tokenizers is None else self.tokenizers.sizes
        model: nn.Module = self.run.model.build_for(sizes)
        return model

    def initialise(self, model: nn.Module) -> Mapping[str, float]:
        """Set the initial values of a new run that are not random, and return notes about them.

        By default, the parts of `train.start` are copied. Raises ConfigError if no part fits the model.
        """
        if self.start is not None:
            self.start.fill(model, self.tokenizers, self.model_settings)
        return {}

    @property
    def is_estimated(self) -> bool:
        """Whether `initialise` estimates the final parameters, so that no updates follow."""
        return False

    @property
    def model_settings(self) -> Mapping[str, Any]:
        """The `model` section of the run; empty if the run has none."""
        model = getattr(self.run, "model", None)
        return model.model_dump(mode="json") if isinstance(model, Config) else {}

    @property
    def model_width(self) -> int:
        """The model width d, on which some learning-rate schedules depend."""
        return 0

    def store_inputs(self) -> None:  # noqa: B027
        """Store the data in the folder of the run that it needs besides its settings. Called on the first rank."""

    def outline(self, model: nn.Module) -> str:
        """Return one line that describes the model and the examples."""
        return f"{count_parameters(model):,} parameters · {self.examples:,} examples"

    @property
    @abstractmethod
    def contents(self) -> Mapping[str, Content]:
        """The corpora (key `data`) and the held-out examples (key `valid`)."""

    @property
    def examples(self) -> int:
        """Number of training examples."""
        return len(self.lengths)

    # The memory of an update:

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int32]:
        """Number of tokens of every example (N, sides), used to divide the work."""

    @property
    @abstractmethod
    def batch_tokens(self) -> int:
        """The token budget of a batch, including padding."""

    def peak_tokens(self) -> int:
        """Return the maximum number of tokens that are computed at once, over all simultaneous passes."""
        return max(self.batch_tokens, int(self.lengths.max()) + 1)

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Estimate the bytes held at the end of a forward pass over `tokens` tokens. free: number of free bytes.

        Returns 0 if there is no estimate; batches are then cut only after one did not fit in memory.
        """
        return 0

    @property
    def packing_obstacle(self) -> str | None:
        """The reason why batches must be padded; None if they may be packed."""
        return "this task pads its batches"

    def choose_batches(self, packed: bool, few_shapes: bool) -> None:
        """Replace `auto` in `data.batch` of a new run by these choices, where the task and the model support them.

        Raises ConfigError if the settings require batches that they do not support.
        """
        batch = getattr(getattr(self.run, "data", None), "batch", None)
        if batch is None:
            return
        obstacle = self.packing_obstacle
        if batch.packed is True and obstacle is not None:
            raise ConfigError(f"data.batch.packed=true is not possible: {obstacle}. Remove the setting")
        if batch.few_shapes is True and not self.has_batch_shapes:
            raise ConfigError("data.batch.few_shapes=true is not supported by this task: remove the setting")
        chosen = batch.with_stored_choices(
            batch.model_copy(
                update={
                    "packed": packed and obstacle is None,
                    "few_shapes": few_shapes and self.has_batch_shapes,
                }
            )
        )
        self.use_batches(chosen)

    @property
    def has_few_shapes(self) -> bool:
        """Whether the batches of the run have few shapes (`data.batch.few_shapes`)."""
        batch = getattr(getattr(self.run, "data", None), "batch", None)
        return batch is not None and batch.few_shapes is True

    def use_batches(self, batch: BatchConfig) -> None:
        """Set the section `data.batch` of the run."""
        self.run = self.run.model_copy(update={"data": self.run.data.model_copy(update={"batch": batch})})

    def begin(self) -> None:  # noqa: B027
        """Write what a run needs in its folder before the first update. Called on the first rank, also on resuming."""

    # In the loop:

    @abstractmethod
    def plan(self, epoch: int) -> BatchPlan:
        """Return the plan of an epoch's batches, a pure function of the epoch's number."""

    def padding(self, plan: BatchPlan) -> str:
        """Return a description of the padding in a plan's batches."""
        return ""

    @property
    def batches_per_update(self) -> int:
        """Number of planned batches per update."""
        return int(self.run.train.accumulate)

    @abstractmethod
    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterable[Any]:
        """Load the plan's batches, starting with number `start`. pin: whether to use page-locked memory, for a GPU."""

    @abstractmethod
    def objective(self, device: torch.device) -> Objective:
        """Return the objective of the task."""

    def trial(self, model: Any) -> Any:
        """Return a small batch for a trial pass."""
        return next(iter(self.batches(self.plan(0), 0, 0, pin=False)))

    @abstractmethod
    def validator(self, model: Any, device: torch.device) -> Validator:
        """Return a validator for the model."""

    def flops_per_target_token(self) -> float:
        """Return the FLOPs of the matrix products per target token, forward and backward; 0 if unknown."""
        return 0.0

    def target_token_count(self) -> int:
        """Return the number of target tokens of an epoch, as counted by its batches; the mean if it is random."""
        return int(self.lengths[:, -1].sum(dtype=np.int64))

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the metadata of a model folder with the parameters of `step`.

        validation: the validation of these parameters, or None.
        """
        named = () if validation is None else validation.scores
        name = self.contents["valid"].name
        scores = [
            RecordedScore(metric=each.name, value=each.value, signature=each.signature, data=name) for each in named
        ]
        return Meta(step=step, averaged_steps=averaged_steps, scores=tuple(scores))

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write parameters as a model folder. validation: the validation of these parameters, or None."""
        if self._dumped[0] is not self.run:  # every checkpoint has the same settings, and dumping them is slow
            self._dumped = (self.run, dump_settings(self.run))
        meta = self.meta(step, validation, averaged_steps)
        samples = self.card_samples()
        write_model_folder(folder, parameters, self._dumped[1], self.tokenizers, meta, samples=samples)

    def card_samples(self) -> Mapping[str, Sequence[str]]:
        """Return some texts of each side, `source` and `target`, whose languages the model card may state."""
        return {}

    def measure(self, folder: Path, validation: Validation) -> Verdict | None:
        """Measure properties of the final model and add them to its folder. Called on the first rank, at the end.

        validation: that of the final model. Returns the verdict on it, if the task has one.
        """
        return None

    def measuring_seconds(self, limit: float, validation: float) -> float:
        """Return how many seconds of a time limit are reserved for `measure`, and for delays on a busy machine.

        limit: the whole time limit, in seconds. validation: duration of a validation, in seconds.
        """
        return min(_LONGEST_DELAY, _DELAYS * limit)

    def close(self) -> None:  # noqa: B027
        """Stop the job's processes at the end of the run."""


OpenJob = Callable[[Any], Job]
"""A function that runs all cheap checks and creates the job of a run. Raises ConfigError and DataError."""
