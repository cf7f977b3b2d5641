"""Runs whose models are estimated from counts, without the training loop: settings, results, and output folders."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.training.run.result import TrainingResult
from dragoman.training.task import IMPORTS, Task


class EstimatedRun(Config):
    """A run that estimates a model from counts: the top level of a recipe. Each task has a subclass."""

    task: Task = Field(description="Task to learn.")
    imports: tuple[str, ...] = Field((), description=IMPORTS)
    out: Path = Field(description="Model folder to write.")


@dataclass(frozen=True)
class EstimationResult(TrainingResult):
    """The result of an estimation. The inherited `step` is 0, and `reason` and `history` are empty."""

    def __str__(self) -> str:
        lines = [f"{self.folder}: the model; on the validation set", *(f"  {each}" for each in self.validation.scores)]
        return "\n".join([*lines, *([] if self.verdict is None else [self.verdict.explanation])])


Estimate = Callable[[Any], EstimationResult]
"""A function that estimates the model of a run and writes its folder."""


def estimate_run(run: Any, estimate: Estimate, resume: bool, profile: bool) -> EstimationResult:
    """Estimate the model of a run.

    Raises ConfigError if `resume` or `profile` is set, which only runs with updates support, and if the folder `out` is
    not empty.
    """
    if resume:
        raise ConfigError(f"task.kind={run.task.kind} has no updates to resume: run it again without --resume")
    if profile:
        raise ConfigError(f"task.kind={run.task.kind} has no updates to profile: leave out --profile")
    if run.out.exists() and (not run.out.is_dir() or any(run.out.iterdir())):
        raise ConfigError(f"{run.out} already exists: choose another --out, or delete it")
    return estimate(run)
