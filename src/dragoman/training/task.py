"""The promise of a task: what the loop must know of what is learned, and all that it knows.

A `Task` is a config whose `kind` leads to the classes of a run and of its `Job` (`tasks.kinds`). The job makes examples
ready, builds a model, and says what its loss is, how it is judged and what a finished folder holds. The loop moves an
`nn.Module` by the job's loss on the job's batches; what they are made of is the task's business.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta, Score
from dragoman.checkpoint.start import Start
from dragoman.data.batches.plan import BatchPlan
from dragoman.models.parts import count_parameters
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.config import LoopConfig
from dragoman.training.objectives.objective import Objective
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation


class Batch(Protocol):
    """Some examples, as tensors.

    task: which of several tasks they are of; target_tokens: what the loss is a sum over: tokens, or whatever a task
    predicts; rows: the examples' numbers in the corpus.
    """

    @property
    def task(self) -> str: ...

    @property
    def target_tokens(self) -> int: ...

    @property
    def rows(self) -> tuple[int, ...]: ...

    def to(self, device: torch.device) -> Self:
        """The same batch with its tensors on `device`."""
        ...

    def cut(self, count: int) -> list[Self]:
        """`count` parts with about equally many examples each, or as many parts as there are examples."""
        ...


class Validator(Protocol):
    """Judges a model on held-out examples."""

    def run(self, runtime: Runtime) -> Validation:
        """Judge the model as it stands; several ranks share the examples, and all know the result."""
        ...


class Task(Config):
    """The base of every task's config. A new task is a subclass of this, of `RunConfig` and of `Job`."""

    kind: str


class RunConfig(Config):
    """A training run: the top level of a recipe. Each task's own run adds the sections that the task needs."""

    task: Task = Field(description="Task to learn.")
    train: LoopConfig = Field(LoopConfig(), description="Training loop.")
    out: Path = Field(description="Folder of the run; when training ends it is a model folder.")

    def chosen_as(self, stored: Self) -> Self:
        """The same settings, with what they leave to the data taken from the run `stored`, which has chosen it."""
        return self


@dataclass(frozen=True)
class Content:
    """What a resumed run must find as it was. name: of the files, for messages; fingerprint: of what is in them."""

    name: str
    fingerprint: str


class Job(ABC):
    """A task in one run. `prepare` comes first, then `build`, then the rest.

    run: the settings, of which `prepare` decides what was left to the data. start: the model of `train.start`, if one
    is set. notes: what `initialise` has found out, kept with the run. tasks: the names of the tasks whose batches an
    update mixes; a single task has no name.
    """

    run: Any
    notes: Mapping[str, float]
    tasks: tuple[str, ...] = ("",)

    def __init__(self, run: Any, start: Start | None = None) -> None:
        """start: the model of `train.start`, where it is loaded already."""
        self.run, self.notes = run, {}
        self.start = start
        if start is None and run.train.start is not None:
            self.start = Start.load(run.train.start, run.train.start_parts)

    @property
    def tokenizers(self) -> Tokenizers | None:
        """Those of the examples; None for a task without text."""
        return None

    # Before the loop.

    def check_initial_values(self) -> None:  # noqa: B027
        """Look at the files that `initialise` will read, if there are any, before `prepare` takes its time."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the examples ready, which may take long, and decide in `run` what was left to them."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A model with initial values from torch's default generator. Raises ConfigError where examples do not fit."""

    def initialise(self, model: nn.Module) -> Mapping[str, float]:
        """Put in initial values that are not random, in a new run; gives the notes. Here: the parts of `train.start`.

        Raises ConfigError where nothing of it fits the model.
        """
        if self.start is not None:
            self.start.fill(model, self.tokenizers, self.model_settings)
        return {}

    @property
    def model_settings(self) -> Mapping[str, Any]:
        """The section `model` of the run, where it has one."""
        model = getattr(self.run, "model", None)
        return model.model_dump(mode="json") if isinstance(model, Config) else {}

    @property
    def model_width(self) -> int:
        """d, which some learning-rate schedules depend on."""
        return 0

    def outline(self, model: nn.Module) -> str:
        """The model and the examples, in a line for people."""
        return f"{count_parameters(model):,} parameters · {self.examples:,} examples"

    @property
    @abstractmethod
    def contents(self) -> Mapping[str, Content]:
        """`data` and `valid`: the corpora and the held-out examples."""

    @property
    def examples(self) -> int:
        """How many there are to learn from."""
        return len(self.lengths)

    # What memory an update takes.

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int32]:
        """(N, sides) tokens of every example, by which work is shared out."""

    @property
    @abstractmethod
    def batch_tokens(self) -> int:
        """The token budget of a batch, padding counted."""

    def peak_tokens(self) -> int:
        """The most tokens of a batch that are computed at once: of the longest example, in all simultaneous passes."""
        return max(self.batch_tokens, int(self.lengths.max()) + 1)

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """An estimate of the bytes that a forward pass over so many tokens holds at its end; free: bytes there are.

        0 where nobody has measured the model: its batches are then cut when they do not fit, not before.
        """
        return 0

    # The loop.

    @abstractmethod
    def plan(self, epoch: int) -> BatchPlan:
        """The batches of an epoch, a pure function of its number."""

    def padding(self, plan: BatchPlan) -> str:
        """What the padding of a plan's batches costs, in words."""
        return ""

    @property
    def batches_an_update(self) -> int:
        """How many of the plan's batches make an update."""
        return int(self.run.train.accumulate)

    @abstractmethod
    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterable[Any]:
        """The plan's batches from number `start` on; pin: in page-locked memory, for a GPU."""

    @abstractmethod
    def objective(self, device: torch.device) -> Objective:
        """What is minimised."""

    def trial(self, model: Any) -> Any:
        """A batch, to watch a pass over it; the smaller, the better."""
        return next(iter(self.batches(self.plan(0), 0, 0, pin=False)))

    @abstractmethod
    def validator(self, model: Any, device: torch.device) -> Validator:
        """What judges the model."""

    def flops_per_target_token(self) -> float:
        """FLOPs of the matrix products for a target token, forward and backward; 0 where they are not known."""
        return 0.0

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """What the model folder and its card say of parameters of `step`. validation: what they reached, if known."""
        measures = () if validation is None else validation.measures
        name = self.contents["valid"].name
        scores = [Score(metric=each.name, value=each.value, signature=each.signature, data=name) for each in measures]
        return Meta(step=step, averaged_steps=averaged_steps, scores=tuple(scores))

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write parameters as a model folder; validation: what they reached, if they were judged."""
        meta = self.meta(step, validation, averaged_steps)
        write_model_folder(folder, parameters, dump_settings(self.run), self.tokenizers, meta)

    def close(self) -> None:  # noqa: B027
        """The run has ended: let go of processes."""


OpenJob = Callable[[Any], Job]
"""Makes a job for a run after checking all that is cheap to check. Raises ConfigError and DataError."""
