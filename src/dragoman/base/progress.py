"""`Progress`: shows how much of a long task is done, its speed and the remaining time."""

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

from dragoman.base.log import console, format_duration, info, is_quiet

Total = int | None | Callable[[], int | None]


class Progress:
    """Progress of a long task on stderr: a live line on a terminal or in a notebook, otherwise a line at intervals.

    Use it as a context manager around the task. Nothing is shown for very short tasks, within `quietly`, in threads
    other than the main one, and on ranks other than the first. The line of a nested task replaces that of the outer
    one. `update` takes a microsecond.
    """

    def __init__(
        self,
        activity: str,
        unit: str = "",
        total: Total = None,
        *,
        done: int | None = 0,
        shown: bool = True,
        lines: bool = True,
        closes: bool = False,
    ) -> None:
        """activity: name of the task, such as "Translating". unit: the unit in the plural; if empty, no speed is shown.

        total: the number of units, or None if unknown; a function is called once, and only if the task takes long.
        done: units completed by an earlier process; None: those of the first update. shown: False shows nothing.
        lines: False shows only a live line. closes: report the total at the end if progress was shown before.
        """
        self.activity, self.unit = activity, unit
        self.done, self.status = done or 0, ""
        self.opened = self.started_at = time.monotonic()
        self._total, self._first, self._lines, self._closes = total, done, lines, closes
        self._shown, self._reported = shown, False
        self._display: Display | None = None
        self._next = 0.0

    def __enter__(self) -> Self:
        if self._shown and not is_quiet() and threading.current_thread() is threading.main_thread():
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
        if self._closes and self._reported and error is None:
            seconds = time.monotonic() - self.started_at
            info(f"{self.done:,} {self.unit} are done: {self._speed(seconds)}, {format_duration(seconds)}.")

    def update(self, done: int, status: str = "", total: int | None = None) -> None:
        """Set the units done, including earlier processes. status: shown instead of the number; total: a new total."""
        self.done, self.status = done, status
        if total is not None:
            self._total = total
        now = time.monotonic()
        if self._first is None:
            self._first, self.started_at = done, now
        if self._display is None or now < self._next:
            return
        self._next = now + self._display.interval
        self._reported = True
        if callable(self._total):
            self._total = self._total()
        self._display.show(self, now)

    @property
    def total(self) -> int | None:
        """The number of units, or None if it is not known yet."""
        return None if callable(self._total) else self._total

    @property
    def live(self) -> bool:
        """Whether progress is shown by a line that is redrawn."""
        return self._display is not None and self._display.live

    def text(self, now: float) -> str:
        """Return the line to show. now: seconds of the monotonic clock."""
        if not self.unit:
            return f"{self.activity}: {self.status}" if self.status else self.activity
        of = "" if self.total is None else f" of {self.total:,}"
        seconds, own = now - self.started_at, self.done - (self._first or 0)
        text = f"{self.activity}: {self.status or f'{self.done:,}{of} {self.unit}'}"
        if not own:
            return text
        text = f"{text} · {self._speed(seconds)}"
        if self.total is None:
            return text
        return f"{text} · {format_duration(max(0.0, (self.total - self.done) * seconds / own))} left"

    def _speed(self, seconds: float) -> str:
        """Return the speed of this process, with its unit."""
        speed = (self.done - (self._first or 0)) / max(seconds, 1e-9)
        return f"{speed:,.{0 if speed >= 10 else 1}f} {self.unit}/s"


_SHORTEST_BAR, _LONGEST_BAR = 8, 24
"""Characters."""


class Display(ABC):
    """A place where progress is shown. All tasks are opened and closed by one thread, inner ones before outer ones.

    live: whether the display is redrawn; delay: seconds before a task is shown; interval: seconds between two updates.
    """

    live: ClassVar[bool]
    delay: ClassVar[float]
    interval: ClassVar[float]

    def __init__(self) -> None:
        self._open: list[Progress] = []

    def open(self, progress: Progress) -> None:
        """Called at the start of a task."""
        self._open.append(progress)

    def close(self, progress: Progress) -> None:
        """Called at the end of a task, finished or not."""
        if progress in self._open:
            del self._open[self._open.index(progress) :]

    @abstractmethod
    def show(self, progress: Progress, now: float) -> None:
        """Show the progress of a task; called at most once per interval."""


class Lines(Display):
    """Prints one line after another on stderr."""

    live, delay, interval = False, 30.0, 30.0

    def show(self, progress: Progress, now: float) -> None:
        """Print another line."""
        info(progress.text(now))


class Terminal(Display):
    """The last line of the terminal, redrawn four times per second by a thread, so that the task never waits.

    It shows the innermost task that has run for `delay` seconds. Messages appear above it.
    """

    live, delay, interval = True, 0.5, 0.5
    _EVERY = 0.25

    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._spinner = Spinner("dots")

    def open(self, progress: Progress) -> None:
        """Start the thread with the first task."""
        super().open(progress)
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def close(self, progress: Progress) -> None:
        """Remove the line with the last task."""
        super().close(progress)
        if not self._open and self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None

    def show(self, progress: Progress, now: float) -> None:
        """Do nothing, because the thread reads the progress itself."""

    def _draw(self) -> None:
        # output of the task to stdout on the same terminal also appears above the line
        live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty())
        try:
            while not self._stopped.wait(self._EVERY):
                now = time.monotonic()
                visible = [progress for progress in self._open.copy() if now - progress.opened >= self.delay]
                if not visible:
                    continue
                if not live.is_started:
                    live.start()
                    console.show_cursor()  # a killed process could not restore it
                live.update(self._line(visible[-1], now), refresh=True)
        finally:
            live.stop()

    def _line(self, progress: Progress, now: float) -> RenderableType:
        """Return the line, with bar and time if they fit."""
        text, elapsed = (
            Text(progress.text(now), no_wrap=True, overflow="ellipsis"),
            format_duration(now - progress.opened),
        )
        cells: list[RenderableType] = [self._spinner, text]
        space = console.width - text.cell_len - len(elapsed) - 5
        if progress.total is not None and space >= _SHORTEST_BAR:
            width = min(space, _LONGEST_BAR)
            cells.append(
                ProgressBar(total=max(1, progress.total), completed=min(progress.done, progress.total), width=width)
            )
        if space >= 0:
            cells.append(Text(elapsed))
        line = Table.grid(padding=(0, 1))
        line.add_row(*cells)
        return line


class Notebook(Display):
    """An output of the notebook cell, which is updated in place and cleared at the end."""

    live, delay, interval = True, 0.5, 0.5

    def __init__(self) -> None:
        super().__init__()
        self._output: Any = None

    def close(self, progress: Progress) -> None:
        """Clear the output with the last task."""
        super().close(progress)
        if not self._open and self._output is not None:
            self._output.update(_plain(""), raw=True)
            self._output = None

    def show(self, progress: Progress, now: float) -> None:
        """Update the output, for the innermost task only."""
        if progress is not self._open[-1]:
            return
        text = _plain(progress.text(now))
        if self._output is None:
            self._output = import_module("IPython.display").display(text, raw=True, display_id=True)
        else:
            self._output.update(text, raw=True)


_LINES, _TERMINAL, _NOTEBOOK = Lines(), Terminal(), Notebook()


def choose_display() -> Display:
    """Return the display for the current stderr."""
    if _in_notebook():
        return _NOTEBOOK
    return _TERMINAL if console.is_terminal and not console.is_dumb_terminal else _LINES


def _in_notebook() -> bool:
    interactive = sys.modules.get("IPython")
    return interactive is not None and hasattr(interactive.get_ipython(), "kernel")


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}
