"""Progress: how much of a long task is done, how fast, and how long the rest takes."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, ClassVar, Self

from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dragoman.base.log import clock, console, info, silent

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


_SHORTEST_BAR, _LONGEST_BAR = 8, 24
"""Characters."""


class Display(ABC):
    """One of the places. Work is opened and closed by one thread, what is part of another before that.

    live: whether what it shows changes as work goes on; delay: seconds before anything is told of a work; interval:
    seconds between two tellings.
    """

    live: ClassVar[bool]
    delay: ClassVar[float]
    interval: ClassVar[float]

    def __init__(self) -> None:
        self._works: list[Work] = []

    def open(self, work: Work) -> None:
        """A work begins."""
        self._works.append(work)

    def close(self, work: Work) -> None:
        """It is over, done or not."""
        if work in self._works:
            del self._works[self._works.index(work) :]

    @abstractmethod
    def told(self, work: Work, now: float) -> None:
        """It has got on, and it is time to say so."""


class Lines(Display):
    """A line on stderr now and then."""

    live, delay, interval = False, 30.0, 30.0

    def told(self, work: Work, now: float) -> None:
        """One more line."""
        info(work.text(now))


class Terminal(Display):
    """The last line of the terminal, four times a second, by a thread of its own: work waits for nothing.

    It shows the innermost work that has lasted for a moment. Messages appear above it.
    """

    live, delay, interval = True, 0.5, 0.5
    _EVERY = 0.25

    def __init__(self) -> None:
        super().__init__()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._spinner = Spinner("dots")

    def open(self, work: Work) -> None:
        """The first one starts the thread."""
        super().open(work)
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def close(self, work: Work) -> None:
        """With the last one the line goes."""
        super().close(work)
        if not self._works and self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def told(self, work: Work, now: float) -> None:
        """The thread looks for itself."""

    def _draw(self) -> None:
        # whoever writes to stdout at this terminal meanwhile writes above the line too
        live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty())
        try:
            while not self._over.wait(self._EVERY):
                now = time.monotonic()
                lasting = [work for work in self._works.copy() if now - work.opened >= self.delay]
                if not lasting:
                    continue
                if not live.is_started:
                    live.start()
                    console.show_cursor()  # a killed process could not bring it back
                live.update(self._line(lasting[-1], now), refresh=True)
        finally:
            live.stop()

    def _line(self, work: Work, now: float) -> RenderableType:
        """Bar and time only where there is room for them."""
        text, elapsed = Text(work.text(now), no_wrap=True, overflow="ellipsis"), clock(now - work.opened)
        cells: list[RenderableType] = [self._spinner, text]
        room = console.width - text.cell_len - len(elapsed) - 5
        if work.total is not None and room >= _SHORTEST_BAR:
            width = min(room, _LONGEST_BAR)
            cells.append(ProgressBar(total=max(1, work.total), completed=min(work.done, work.total), width=width))
        if room >= 0:
            cells.append(Text(elapsed))
        line = Table.grid(padding=(0, 1))
        line.add_row(*cells)
        return line


class Notebook(Display):
    """An output of the cell that is replaced again and again, and empty in the end."""

    live, delay, interval = True, 0.5, 0.5

    def __init__(self) -> None:
        super().__init__()
        self._output: Any = None

    def close(self, work: Work) -> None:
        """With the last one the text goes."""
        super().close(work)
        if not self._works and self._output is not None:
            self._output.update(_plain(""), raw=True)
            self._output = None

    def told(self, work: Work, now: float) -> None:
        """The outer work waits until the inner is done."""
        if work is not self._works[-1]:
            return
        text = _plain(work.text(now))
        if self._output is None:
            self._output = import_module("IPython.display").display(text, raw=True, display_id=True)
        else:
            self._output.update(text, raw=True)


_LINES, _TERMINAL, _NOTEBOOK = Lines(), Terminal(), Notebook()


def choose_display() -> Display:
    """What stderr is now."""
    if _in_notebook():
        return _NOTEBOOK
    return _TERMINAL if console.is_terminal and not console.is_dumb_terminal else _LINES


def _in_notebook() -> bool:
    interactive = sys.modules.get("IPython")
    return interactive is not None and hasattr(interactive.get_ipython(), "kernel")


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}
