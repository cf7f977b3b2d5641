"""`Ranks`: the processes that train one model together, and their communication except for gradients."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from dragoman.base.errors import DragomanError
from dragoman.base.machine.device import choose_device

Value = TypeVar("Value")


class RankLost(DragomanError):
    """Raised when another process of the run has ended or cannot be reached, so that this process cannot continue."""


class Ranks:
    """The processes of a run with a single process. `ranks.group.Group` represents several, started by torchrun.

    rank: rank of this process. size: number of processes. local_size: number of processes on this machine. device:
    device of this process. group: torch's process group of all processes, for tensors on the CPU.
    """

    rank = 0
    size = 1
    local_size = 1
    group: Any = None

    def __init__(self, device: str) -> None:
        """Raises ConfigError for a device that is not available."""
        self.device = choose_device(device)
        if self.device.index is not None:
            torch.cuda.set_device(self.device)  # on which kernels are launched and graphs recorded

    @property
    def is_main(self) -> bool:
        """Whether this is the first rank, which writes, logs and prints."""
        return self.rank == 0

    @property
    def distributed(self) -> bool:
        """Whether there are several processes."""
        return self.size > 1

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return, on every rank, the sums over all ranks in float64."""
        return list(values)

    def max(self, value: int) -> int:
        """Return, on every rank, the maximum over all ranks."""
        return value

    def broadcast(self, value: Value) -> Value:
        """Return the first rank's value on every rank. JSON must represent the value exactly."""
        return value

    def gather(self, value: Value) -> list[Value]:
        """Return, on every rank, the values of all ranks in order. JSON must represent the values exactly."""
        return [value]

    def wait(self) -> None:
        """Wait until every rank has called this."""

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run the block on the first rank, then on the others, which wait without a timeout.

        If the block fails on the first rank, the others exit silently.
        """
        yield


@dataclass(frozen=True)
class Runtime:
    """The environment of a computation: the device, the precision of matrix products, and the ranks that share it."""

    device: torch.device
    precision: torch.dtype = torch.float32
    ranks: Ranks = field(default_factory=lambda: Ranks("cpu"))

    def autocast(self) -> torch.autocast:
        """Return the autocast context of this precision."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)
