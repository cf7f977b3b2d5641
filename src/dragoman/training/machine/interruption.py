"""Signal handling: Ctrl-C and SIGTERM end a run after the current step instead of inside it."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """A signal handler that records the first signal and raises KeyboardInterrupt at the second.

    received: the signal, or None. grace: number of seconds during which a second signal is ignored, because a launcher
    may forward a signal that the process has already received.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.received: int | None = None
        self._grace, self._received_at = grace, 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal. Raises KeyboardInterrupt at the second one."""
        if self.received is None:
            self.received, self._received_at = number, time.monotonic()
        elif time.monotonic() - self._received_at >= self._grace:
            raise KeyboardInterrupt


@contextmanager
def catch_signals(grace: float = 0.0) -> Iterator[Interruption]:
    """Catch SIGINT and SIGTERM within this context. This has no effect outside the main thread.

    Signals that were ignored when the process was started, for example in a background job of a shell, stay ignored.
    grace: as in `Interruption`.
    """
    interruption = Interruption(grace)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    handled = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, interruption) for number in handled}
    try:
        yield interruption
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
