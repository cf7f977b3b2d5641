"""Signal handling: Ctrl-C and SIGTERM end a run after the current step instead of inside it."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dragoman.base.cancellation import Cancellation
from dragoman.base.interruption import own_signal_handlers
from dragoman.base.log import info

_REPLY_AFTER = 1.0
_REPLY = "interrupting after the current update, which is saved; press Ctrl-C again to stop at once"
"""The message if an update takes longer than `_REPLY_AFTER` seconds to complete. Signals before it count as one."""


class Interruption:
    """A signal handler that records the first signal and raises KeyboardInterrupt at the second.

    received: the signal, or None. cancellation: is cancelled by the first signal, for work that need not be completed.
    grace: number of seconds during which a second signal is ignored, because many press Ctrl-C twice, and a launcher
    may forward a signal that the process has already received.
    """

    def __init__(self, grace: float = _REPLY_AFTER) -> None:
        self.received: int | None = None
        self.cancellation = Cancellation()
        self._reply = threading.Timer(_REPLY_AFTER, info, [_REPLY])
        self._reply.daemon = True
        self._grace, self._received_at, self._is_saving = grace, 0.0, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal. Raises KeyboardInterrupt at the second one, except within `saving`."""
        if self.received is None:
            self.received, self._received_at = number, time.monotonic()
            self.cancellation.cancel()
            self._reply.start()
        elif time.monotonic() - self._received_at >= self._grace and not self._is_saving:
            raise KeyboardInterrupt

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Ignore further signals within this context, in which files are written that an interrupted run needs."""
        previous, self._is_saving = self._is_saving, True
        try:
            yield
        finally:
            self._is_saving = previous

    def close(self) -> None:
        """Do not print a reply any more."""
        self._reply.cancel()


@contextmanager
def catch_signals(grace: float = _REPLY_AFTER) -> Iterator[Interruption]:
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
        with own_signal_handlers():
            yield interruption
    finally:
        interruption.close()
        for number, handler in previous.items():
            signal.signal(number, handler)
