"""`Progress`: shows the completed units, the speed and the remaining time of a long task."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from html import escape
from importlib import import_module
from types import TracebackType
from typing import Any, ClassVar, Self

from rich.cells import cell_len
from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dragoman.base.log import console, format_duration, info, is_quiet

Total = int | None | Callable[[], int | None]

_SAMPLE, _SETTLED = 0.02, 20.0
"""The fraction of the units after which the remaining time is shown, or the number of seconds. The first units say
little: they also pay for what is compiled or read once.
"""


class Progress:
    """Shows the progress of a long task on stderr.

    A terminal or notebook shows a line that is updated in place. Any other output gets a new line at intervals. Use it
    as a context manager around the task. Nothing is shown for very short tasks, within `quietly`, in threads other than
    the main thread, and on ranks other than the first. The line of a nested task replaces the outer task's line.
    `update` takes about one microsecond.
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

        total: number of units, or None if unknown; a function is called once, and only if the task takes long.
        done: number of units completed by an earlier process; None: the value passed to the first `update`.
        shown: whether to show progress. lines: whether to print lines if there is no live display.
        closes: whether to report the total at the end if progress was shown before.
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
        """Set the number of completed units, including those of earlier processes.

        status: text to show instead of the number. total: new total, if it has changed.
        """
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
        """Total number of units, or None if it is not known yet."""
        return None if callable(self._total) else self._total

    @property
    def live(self) -> bool:
        """True if progress is shown in a line that is updated in place."""
        return self._display is not None and self._display.live

    def text(self, now: float) -> str:
        """Return the line to show. now: time of the monotonic clock, in seconds."""
        if not self.unit:
            return f"{self.activity}: {self.status}" if self.status else self.activity
        of = "" if self.total is None else f" of {self.total:,}"
        seconds, done_here = now - self.started_at, self.done - (self._first or 0)
        text = f"{self.activity}: {self.status or f'{self.done:,}{of} {self.unit}'}"
        if not done_here:
            return text
        text = f"{text} · {self._speed(seconds)}"
        if self.total is None or (seconds < _SETTLED and done_here < _SAMPLE * (self.total - (self._first or 0))):
            return text
        return f"{text} · {format_duration(max(0.0, (self.total - self.done) * seconds / done_here))} left"

    def _speed(self, seconds: float) -> str:
        """Format the speed of this process with its unit."""
        speed = (self.done - (self._first or 0)) / max(seconds, 1e-9)
        return f"{speed:,.{0 if speed >= 10 else 1}f} {self.unit}/s"


_PART = " · "
"""The separator of the parts of a text."""

_MIN_BAR_WIDTH, _MAX_BAR_WIDTH = 8, 24
"""Limits for the width of the progress bar, in characters."""


class Display(ABC):
    """An output that shows progress. One thread opens and closes all tasks; nested tasks are closed before outer ones.

    live: whether the display is updated in place. delay: seconds before a task is shown. interval: seconds between two
    updates.
    """

    live: ClassVar[bool]
    delay: ClassVar[float]
    interval: ClassVar[float]

    def __init__(self) -> None:
        self._open: list[Progress] = []

    def open(self, progress: Progress) -> None:
        """Add a task. Called at its start."""
        self._open.append(progress)

    def close(self, progress: Progress) -> None:
        """Remove a task. Called at its end, even if it failed."""
        if progress in self._open:
            del self._open[self._open.index(progress) :]

    @abstractmethod
    def show(self, progress: Progress, now: float) -> None:
        """Show the progress of a task. Called at most once per interval."""


class Lines(Display):
    """Prints a new line on stderr at each update."""

    live, delay, interval = False, 30.0, 30.0

    def show(self, progress: Progress, now: float) -> None:
        """Print another line."""
        info(progress.text(now))


class Terminal(Display):
    """Shows progress in the last line of the terminal, which a thread redraws four times per second.

    The line shows the innermost task that has run for at least `delay` seconds. Messages appear above the line.
    """

    live, delay, interval = True, 0.5, 0.5
    _REDRAW_INTERVAL = 0.25

    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._spinner = Spinner("dots")

    def open(self, progress: Progress) -> None:
        """Add a task, and start the thread if it is the first task."""
        super().open(progress)
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def close(self, progress: Progress) -> None:
        """Remove a task, and stop the thread if it was the last task."""
        super().close(progress)
        if not self._open and self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None

    def show(self, progress: Progress, now: float) -> None:
        """Do nothing, because the thread reads the progress."""

    def _draw(self) -> None:
        # Output of the task to stdout also appears above the line if stdout is the same terminal.
        live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty())
        try:
            while not self._stopped.wait(self._REDRAW_INTERVAL):
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
        """Return the line, with a progress bar and the elapsed time if they fit.

        Parts at the end of a text are omitted, because a cut would be inside a word or a number.
        """
        elapsed = format_duration(now - progress.opened)
        shown = progress.text(now)
        while cell_len(shown) > console.width - 3 and _PART in shown:
            shown = shown.rpartition(_PART)[0]
        text = Text(shown, no_wrap=True, overflow="ellipsis")
        cells: list[RenderableType] = [self._spinner, text]
        space = console.width - text.cell_len - len(elapsed) - 5
        if progress.total is not None and space >= _MIN_BAR_WIDTH:
            width = min(space, _MAX_BAR_WIDTH)
            cells.append(
                ProgressBar(total=max(1, progress.total), completed=min(progress.done, progress.total), width=width)
            )
        if space >= 0:
            cells.append(Text(elapsed))
        line = Table.grid(padding=(0, 1))
        line.add_row(*cells)
        return line


class Notebook(Display):
    """Shows progress in an output of the notebook cell, which is updated in place and cleared at the end."""

    live, delay, interval = True, 0.5, 0.5

    def __init__(self) -> None:
        super().__init__()
        self._output: Any = None

    def close(self, progress: Progress) -> None:
        """Remove a task, and clear the output if it was the last task."""
        super().close(progress)
        if not self._open and self._output is not None:
            self._output.update(_plain(""), raw=True)
            self._output = None

    def show(self, progress: Progress, now: float) -> None:
        """Update the output if `progress` is the innermost task."""
        if progress is not self._open[-1]:
            return
        content = _bar(progress, now)
        if self._output is None:
            self._output = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._output.update(content, raw=True)


_LINES, _TERMINAL, _NOTEBOOK = Lines(), Terminal(), Notebook()


def choose_display() -> Display:
    """Return the display for the current stderr."""
    if _in_notebook():
        return _NOTEBOOK
    return _TERMINAL if console.is_terminal and not console.is_dumb_terminal else _LINES


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}


def _bar(progress: Progress, now: float) -> dict[str, str]:
    """Return the text, and for notebooks that show HTML the text after a bar if the total is known."""
    content = _plain(progress.text(now))
    if progress.total:
        bar = f'<progress value="{progress.done}" max="{progress.total}"></progress>'
        content["text/html"] = f"{bar} {escape(content['text/plain'])}"
    return content
