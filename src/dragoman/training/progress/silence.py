"""`Silence`: the report of a process that says nothing, because another one does."""

from collections.abc import Mapping
from typing import Any

from dragoman.training.progress.progress import Unlogged
from dragoman.training.progress.report import Report
from dragoman.training.validation import Validation


class Silence(Report):
    """Writes no log and shows no progress."""

    def __init__(self, unlogged: Unlogged) -> None:
        self.unlogged = unlogged

    def __enter__(self) -> "Silence":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def step(self, *_: Any) -> None:
        """Nothing."""

    def validation(self, validation: Validation, where: Mapping[str, Any], better: bool) -> None:
        """Nothing."""

    def resume_clock(self) -> None:
        """Nothing."""

    def sync(self) -> None:
        """Nothing."""
