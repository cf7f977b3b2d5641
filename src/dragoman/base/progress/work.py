"""`Work`: something that takes a while, and what is told of it: how much is done, how fast, how long the rest takes."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from dragoman.base.log import clock, info, silent
from dragoman.base.progress.display import Display, choose_display

Total = int | None | Callable[[], int | None]


class Work:
    """On stderr it is a live line, where that is a terminal or a notebook's cell, else a line now and then.

    Open it with `with` while it is done. Nothing is told of work that is over at once, of work within `quietly`, in
    threads beside the main one, and of ranks but the first. Where one work is part of another, its line takes the
    other's place. `tell` costs a microsecond.
    """

    def __init__(
        self,
        what: str,
        unit: str = "",
        total: Total = None,
        *,
        done: int | None = 0,
        shown: bool = True,
        lines: bool = True,
        closes: bool = False,
    ) -> None:
        """what: the activity, such as `Translating`; unit: what is counted, in the plural; none: no speed is told.

        total: how many there are, or None where nobody knows; a function is asked once, and only of a work that takes
        long. done: how many an earlier process did; None: those that are told first. shown: False tells nothing; lines:
        False only a live line; closes: tell in the end what was done, if anything was told before.
        """
        self.what, self.unit = what, unit
        self.done, self.said = done or 0, ""
        self.opened = self.begun = time.monotonic()
        self._total, self._first, self._lines, self._closes = total, done, lines, closes
        self._shown, self._told = shown, False
        self._display: Display | None = None
        self._next = 0.0

    def __enter__(self) -> Self:
        if self._shown and not silent() and threading.current_thread() is threading.main_thread():
            display = choose_display()
            if display.live or self._lines:
                self._display = display
                self._next = self.opened + display.delay
                display.open(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is None:
            return
        self._display.close(self)
        if self._closes and self._told and error is None:
            seconds = time.monotonic() - self.begun
            info(f"{self.done:,} {self.unit} are done: {self._speed(seconds)}, {clock(seconds)}.")

    def tell(self, done: int, said: str = "", total: int | None = None) -> None:
        """How much is done, earlier processes' share too. said: is told instead of that number; total: a new one."""
        self.done, self.said = done, said
        if total is not None:
            self._total = total
        now = time.monotonic()
        if self._first is None:
            self._first, self.begun = done, now
        if self._display is None or now < self._next:
            return
        self._next = now + self._display.interval
        self._told = True
        if callable(self._total):
            self._total = self._total()
        self._display.told(self, now)

    @property
    def total(self) -> int | None:
        """How many there are, as far as that is known yet."""
        return None if callable(self._total) else self._total

    @property
    def live(self) -> bool:
        """Whether there is a line that changes as the work goes on."""
        return self._display is not None and self._display.live

    def text(self, now: float) -> str:
        """All that is told of it at a moment of the monotonic clock (seconds)."""
        if not self.unit:
            return f"{self.what}: {self.said}" if self.said else self.what
        of = "" if self.total is None else f" of {self.total:,}"
        seconds, own = now - self.begun, self.done - (self._first or 0)
        text = f"{self.what}: {self.said or f'{self.done:,}{of} {self.unit}'}"
        if not own:
            return text
        text = f"{text} · {self._speed(seconds)}"
        if self.total is None:
            return text
        return f"{text} · {clock(max(0.0, (self.total - self.done) * seconds / own))} left"

    def _speed(self, seconds: float) -> str:
        """Of this process."""
        speed = (self.done - (self._first or 0)) / max(seconds, 1e-9)
        return f"{speed:,.{0 if speed >= 10 else 1}f} {self.unit}/s"
