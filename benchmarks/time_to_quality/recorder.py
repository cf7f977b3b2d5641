"""`Recorder`: in a program's process, measures the time of its updates and makes the points of its curve."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ledger import Ledger, Mark

Translate = Callable[[], list[str]]
"""Translates the validation set greedily with the program's current parameters."""

GROWTH = 1.1
"""The ratio of the times of successive points, once that is more than `every`."""


def next_point(minutes: float, every: float) -> float:
    """Return the next minute of a grid that is the same for all programs: steps of `every`, later of a tenth."""
    point = every
    while point <= minutes:
        point = max(point + every, GROWTH * point)
    return point


@dataclass
class Clocks:
    """Return wall time, and this process's CPU time on all cores (seconds)."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


class Recorder:
    """Measures time between `start` and `stop`, except within `paused`.

    every: minimum number of minutes between points; limit: minutes after which the run is `over`.
    """

    def __init__(self, folder: Path, every: float, limit: float, clocks: Clocks | None = None) -> None:
        self.ledger = Ledger(folder)
        self._every, self._limit, self._clocks = every, limit, clocks or Clocks()
        self._pauses = 1
        self._since, self._cpu_since = 0.0, 0.0
        self._next = next_point(0.0, every)
        self.updates, self._tokens, self._sitting = 0, 0, 1
        self._seconds, self._cpu_seconds, self._own_seconds = 0.0, 0.0, 0.0

    def begin(self, updates: int, translate: Translate) -> None:
        """Set the number of updates: 0, or that of the checkpoint that the program continues from."""
        mark = self.ledger.go_back(updates)
        self.updates, self._tokens, self._sitting = updates, mark.tokens, mark.sitting + 1
        self._seconds, self._cpu_seconds, self._own_seconds = mark.seconds, mark.cpu_seconds, mark.own_seconds
        points = [each.seconds / 60 for each in self.ledger.marks() if each.point]
        self._next = next_point(max(points, default=0.0), self._every)
        if mark.point and not self.ledger.translations(updates).exists():
            self._translate(translate)

    def start(self) -> None:
        """Start the clock."""
        assert self._pauses == 1
        self._pauses = 0
        self._go_on()

    def stop(self) -> None:
        """Stop the clock for good, if it is running."""
        if self._pauses == 0:
            self._halt()
        self._pauses = 1

    def step(self, tokens: int) -> None:
        """Record an update. tokens: target tokens without padding, including the end of each sentence."""
        self.updates += 1
        self._tokens += tokens

    @contextmanager
    def paused(self, own: bool = False) -> Iterator[None]:
        """Stop the clock in this context. own: whether this is one of the program's own validations."""
        if self._pauses == 0:
            self._halt()
        self._pauses += 1
        began = self._clocks.wall()
        try:
            yield
        finally:
            if own:
                self._own_seconds += self._clocks.wall() - began
            self._pauses -= 1
            if self._pauses == 0:
                self._go_on()

    @property
    def minutes(self) -> float:
        """Minutes of updates so far."""
        running = self._clocks.wall() - self._since if self._pauses == 0 else 0.0
        return (self._seconds + running) / 60

    @property
    def over(self) -> bool:
        """Whether the time limit is reached."""
        return self.minutes >= self._limit

    @property
    def due(self) -> bool:
        """Whether a point of the curve is due."""
        return self.over or self.minutes >= self._next

    def mark(self, point: bool = False) -> None:
        """Record the clock, before the program writes a checkpoint."""
        with self.paused():
            counts = self.updates, self._tokens
            self.ledger.add(Mark(*counts, self._seconds, self._cpu_seconds, self._own_seconds, point, self._sitting))

    def point(self, save: Callable[[], object], translate: Translate) -> None:
        """Make a point of the curve: a checkpoint, written by `save`, and its translations."""
        with self.paused():
            self.mark(point=True)
            save()
            self._translate(translate)
            self._next = next_point(self._seconds / 60, self._every)

    def finish(self, translate: Translate) -> None:
        """Make the last point, of the program's final model."""
        self.stop()
        self.mark(point=True)
        self._translate(translate)

    def _translate(self, translate: Translate) -> None:
        """Restore the random state, so that dropout is not affected."""
        import torch

        state = random.getstate()
        with torch.random.fork_rng():
            lines = translate()
        random.setstate(state)
        self.ledger.write_translations(self.updates, lines)

    def _halt(self) -> None:
        self._seconds += self._clocks.wall() - self._since
        self._cpu_seconds += self._clocks.cpu() - self._cpu_since

    def _go_on(self) -> None:
        self._since, self._cpu_since = self._clocks.wall(), self._clocks.cpu()
