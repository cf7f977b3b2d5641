"""`TaskBatch`: a batch that says which of several tasks it is of."""

from dataclasses import dataclass, replace
from typing import Any

import torch


@dataclass(frozen=True)
class TaskBatch:
    """task: its name; batch: of the task's own kind."""

    task: str
    batch: Any

    @property
    def target_tokens(self) -> int:
        """Of the batch."""
        return int(self.batch.target_tokens)

    @property
    def rows(self) -> tuple[int, ...]:
        """Of the batch, in the numbering of its task."""
        return tuple(self.batch.rows)

    def to(self, device: torch.device) -> "TaskBatch":
        """The same batch on `device`."""
        return replace(self, batch=self.batch.to(device))

    def cut(self, count: int) -> list["TaskBatch"]:
        """Parts of the batch."""
        return [replace(self, batch=part) for part in self.batch.cut(count)]
