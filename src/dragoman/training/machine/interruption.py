"""Ctrl-C and SIGTERM end a run after the current step instead of inside it."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dragoman.base.errors import DragomanError


class Interrupted(DragomanError):
    """The run was asked to stop; its state is saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class Interruption:
    """received: the signal that asked for the end, or None.

    grace: seconds in which a second signal is taken for the first: a launcher may pass on what the process got itself.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.received: int | None = None
        self._grace, self._since = grace, 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The handler. A second signal is not waited for: it interrupts at once."""
        if self.received is None:
            self.received, self._since = number, time.monotonic()
        elif time.monotonic() - self._since >= self._grace:
            raise KeyboardInterrupt


@contextmanager
def interruption(grace: float = 0.0) -> Iterator[Interruption]:
    """Catch SIGINT and SIGTERM while open; outside the main thread there is nothing to catch.

    grace: as for `Interruption`.

    One that the process was started to ignore, as shells do for background jobs, stays ignored.
    """
    request = Interruption(grace)
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    heard = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, request) for number in heard}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
