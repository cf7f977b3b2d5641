"""`Recorder`: in a program's process, the clock of its updates, and the points of its curve."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ledger import Ledger, Mark

Translate = Callable[[], list[str]]
"""The validation set's sources in the program's greedy translation, by the parameters as they are now."""

GROWTH = 1.1
"""From one point to the next, once a tenth of the time is more than `every`."""


def next_point(minutes: float, every: float) -> float:
    """The first minute after `minutes` of a grid that is the same for all: steps of `every`, later of a tenth."""
    point = every
    while point <= minutes:
        point = max(point + every, GROWTH * point)
    return point


@dataclass
class Clocks:
    """Where the time is read, in seconds: the clock on the wall, and this process's CPU time on all cores."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


class Recorder:
    """The clock runs from `start` to `stop` but not in `paused`.

    every: minutes between points at least; limit: minutes after which the run is `over`.
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
        """The program has so many updates behind it: 0, or those of the checkpoint that it goes on from."""
        mark = self.ledger.go_back(updates)
        self.updates, self._tokens, self._sitting = updates, mark.tokens, mark.sitting + 1
        self._seconds, self._cpu_seconds, self._own_seconds = mark.seconds, mark.cpu_seconds, mark.own_seconds
        points = [each.seconds / 60 for each in self.ledger.marks() if each.point]
        self._next = next_point(max(points, default=0.0), self._every)
        if mark.point and not self.ledger.translations(updates).exists():
            self._translate(translate)

    def start(self) -> None:
        """Let the clock run."""
        assert self._pauses == 1
        self._pauses = 0
        self._go_on()

    def stop(self) -> None:
        """For good; it may have been stopped already."""
        if self._pauses == 0:
            self._halt()
        self._pauses = 1

    def step(self, tokens: int) -> None:
        """An update was made, of so many target tokens: padding not counted, the end of each sentence counted."""
        self.updates += 1
        self._tokens += tokens

    @contextmanager
    def paused(self, own: bool = False) -> Iterator[None]:
        """What happens inside is no update. own: it is a validation that the program makes by itself."""
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
        """Of updates so far."""
        running = self._clocks.wall() - self._since if self._pauses == 0 else 0.0
        return (self._seconds + running) / 60

    @property
    def over(self) -> bool:
        """Whether the limit is reached."""
        return self.minutes >= self._limit

    @property
    def due(self) -> bool:
        """Whether the curve wants a point now."""
        return self.over or self.minutes >= self._next

    def mark(self, point: bool = False) -> None:
        """Keep what the clock shows; before the program puts a checkpoint of these updates into its place."""
        with self.paused():
            counts = self.updates, self._tokens
            self.ledger.add(Mark(*counts, self._seconds, self._cpu_seconds, self._own_seconds, point, self._sitting))

    def point(self, save: Callable[[], object], translate: Translate) -> None:
        """A point of the curve: a checkpoint to go on from, written by `save`, and its translations."""
        with self.paused():
            self.mark(point=True)
            save()
            self._translate(translate)
            self._next = next_point(self._seconds / 60, self._every)

    def finish(self, translate: Translate) -> None:
        """The last point: of the model that the program leaves."""
        self.stop()
        self.mark(point=True)
        self._translate(translate)

    def _translate(self, translate: Translate) -> None:
        """Dropout goes on as if nothing had been."""
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
