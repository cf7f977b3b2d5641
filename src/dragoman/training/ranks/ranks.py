"""`Ranks`: the processes that train one model together, and what they tell one another beside gradients."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from dragoman.base.errors import DragomanError
from dragoman.base.machine.device import choose_device

Value = TypeVar("Value")


class RankLost(DragomanError):
    """Another process of the run has ended or cannot be reached, so this one cannot go on alone."""


class Ranks:
    """A run of one process, which has nobody to tell. `ranks.group.Group` is several, started by torchrun.

    rank: which one this is; size: how many there are; local_size: how many of them on this machine; device: where this
    one computes; group: torch's process group of all, from CPU to CPU.
    """

    rank = 0
    size = 1
    local_size = 1
    group: Any = None

    def __init__(self, device: str) -> None:
        """Raises ConfigError for a device that is not there."""
        self.device = choose_device(device)

    @property
    def is_main(self) -> bool:
        """Whether this process writes, logs and prints."""
        return self.rank == 0

    @property
    def distributed(self) -> bool:
        """Whether there are others."""
        return self.size > 1

    def sum(self, values: Sequence[float]) -> list[float]:
        """The sums over all ranks, the same on each, in float64."""
        return list(values)

    def max(self, value: int) -> int:
        """The largest of all ranks' values."""
        return value

    def broadcast(self, value: Value) -> Value:
        """The first rank's value on every rank; it must survive JSON unchanged."""
        return value

    def gather(self, value: Value) -> list[Value]:
        """Every rank's value, in their order, on every rank; values must survive JSON unchanged."""
        return [value]

    def wait(self) -> None:
        """Go on once every rank has come here."""

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """The first rank does what is inside, however long it takes; the others do it when it is done there.

        Where it fails on the first rank the others end without a word.
        """
        yield


@dataclass(frozen=True)
class Runtime:
    """device: of this process; precision: of matrix products; ranks: the processes that share the work."""

    device: torch.device
    precision: torch.dtype = torch.float32
    ranks: Ranks = field(default_factory=lambda: Ranks("cpu"))

    def autocast(self) -> torch.autocast:
        """The context in which a model runs at that precision."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)
