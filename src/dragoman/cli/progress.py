"""`LineProgress`: how many lines are done, how fast, and how long the rest takes."""

import time
from collections.abc import Callable
from types import TracebackType

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dragoman.base.log import clock, console, info

SECONDS_BETWEEN_LINES = 30
"""Where stderr is no terminal."""

_SECONDS_BETWEEN_UPDATES = 0.5
"""Of the bar, which does not appear before."""


class LineProgress:
    """On stderr: a bar where it is a terminal, else a line now and then; nothing of work that is done at once.

    Open it with `with` while lines are worked on.
    """

    def __init__(self, count: Callable[[], int | None], done: int | None = None, shown: bool = True) -> None:
        """count: gives the number of all lines, or None where nobody knows; asked once, and only for a work that takes
        long. done: lines that an earlier process did; None: those that are told first. shown: False tells nothing.
        """
        self._count, self._first, self._shown, self._done = count, done, shown, done or 0
        self._interval = _SECONDS_BETWEEN_UPDATES if console.is_terminal else SECONDS_BETWEEN_LINES
        self._total: int | None = None
        self._progress: Progress | None = None
        self._begun = self._told = time.monotonic()
        self._counted = False

    def __enter__(self) -> "LineProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._counted and error is None:
            seconds = time.monotonic() - self._begun
            info(f"{self._done:,} lines are done: {self._speed(seconds)}, {clock(seconds)}.")

    def tell(self, done: int, what: str = "") -> None:
        """Where the work stands, when it is time to tell. done: lines, those of earlier processes too.

        what: is said instead of their number.
        """
        self._done, now = done, time.monotonic()
        if self._first is None:
            self._first, self._begun = done, now
        if not self._shown or now - self._told < self._interval:
            return
        self._told = now
        if not self._counted:
            self._total, self._counted = self._count(), True
        text = self._text(done, now - self._begun, what)
        if console.is_terminal:
            self._draw(done, text)
        else:
            info(text)

    def _text(self, done: int, seconds: float, what: str) -> str:
        of = "" if self._total is None else f" of {self._total:,}"
        text = f"{what or f'{done:,}{of} lines'} · {self._speed(seconds)}"
        own = done - (self._first or 0)
        if self._total is None or not own:
            return text
        return f"{text} · {clock(max(0.0, (self._total - done) * seconds / own))} left"

    def _speed(self, seconds: float) -> str:
        """Of this process."""
        speed = (self._done - (self._first or 0)) / max(seconds, 1e-9)
        return f"{speed:,.{0 if speed >= 10 else 1}f} lines/s"

    def _draw(self, done: int, text: str) -> None:
        if self._progress is None:
            columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
            self._progress = Progress(*columns, console=console, transient=True)
            self._task = self._progress.add_task(text, total=self._total)
            self._progress.start()
        self._progress.update(self._task, completed=done, description=text)
