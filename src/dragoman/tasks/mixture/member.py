"""`Member`: a task that is learned beside the task of a run, in the same model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman.training.task import Job


@dataclass(frozen=True)
class Member:
    """name: in logs; job: of the task; weight: λ of its mean loss in the sum of all tasks' losses.

    body: what of the run's model the task reads its batches with, such as a translator's decoder alone.
    """

    name: str
    job: Job
    weight: float
    body: Callable[[Any], Any]
