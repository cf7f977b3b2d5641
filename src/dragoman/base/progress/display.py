"""Where people are told of work: a terminal's last line, a notebook's cell, or one line after another."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar, Protocol

from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dragoman.base.log import clock, console, info

_SHORTEST_BAR, _LONGEST_BAR = 8, 24
"""Characters."""


class Told(Protocol):
    """Work as a display sees it. opened: when (seconds of the monotonic clock)."""

    opened: float
    done: int

    @property
    def total(self) -> int | None: ...

    def text(self, now: float) -> str:
        """What is told of it at that moment."""
        ...


class Display(ABC):
    """One of the places. Work is opened and closed by one thread, what is part of another before that.

    live: whether what it shows changes as work goes on; delay: seconds before anything is told of a work; interval:
    seconds between two tellings.
    """

    live: ClassVar[bool]
    delay: ClassVar[float]
    interval: ClassVar[float]

    def __init__(self) -> None:
        self._works: list[Told] = []

    def open(self, work: Told) -> None:
        """A work begins."""
        self._works.append(work)

    def close(self, work: Told) -> None:
        """It is over, done or not."""
        if work in self._works:
            del self._works[self._works.index(work) :]

    @abstractmethod
    def told(self, work: Told, now: float) -> None:
        """It has got on, and it is time to say so."""


class Lines(Display):
    """A line on stderr now and then."""

    live, delay, interval = False, 30.0, 30.0

    def told(self, work: Told, now: float) -> None:
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

    def open(self, work: Told) -> None:
        """The first one starts the thread."""
        super().open(work)
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def close(self, work: Told) -> None:
        """With the last one the line goes."""
        super().close(work)
        if not self._works and self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def told(self, work: Told, now: float) -> None:
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

    def _line(self, work: Told, now: float) -> RenderableType:
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

    def close(self, work: Told) -> None:
        """With the last one the text goes."""
        super().close(work)
        if not self._works and self._output is not None:
            self._output.update(_plain(""), raw=True)
            self._output = None

    def told(self, work: Told, now: float) -> None:
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
