"""Ctrl-C ends a command within about a second, also while libraries are imported or compiled code runs.

Python handles a signal only after the current call of compiled code has returned. `InterruptWatch` therefore has a
thread that cancels the active `Cancellation` at once, and that ends the process if the main thread does not react.
Ending the process is safe at any time, because all files are written atomically (`base.files`).
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Self

from dragoman.base.cancellation import Cancellation, active_cancellation
from dragoman.base.files import remove_live_temporaries

EXIT_CODE = 128 + signal.SIGINT
_SECONDS = 0.8
"""Time in which the main thread has to react to Ctrl-C."""
_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_messages: list[str] = []
_handlers = 0


@contextmanager
def interruption_message(message: str) -> Iterator[None]:
    """Set the message that is printed if Ctrl-C ends the process within this context."""
    _messages.append(message)
    try:
        yield
    finally:
        _messages.remove(message)


@contextmanager
def own_signal_handlers() -> Iterator[None]:
    """State that the code within this context handles signals, so that the process is not ended during the context."""
    global _handlers
    _handlers += 1
    try:
        yield
    finally:
        _handlers -= 1


class InterruptWatch:
    """Handles Ctrl-C while a command runs: the first one raises KeyboardInterrupt, and the second one ends the process.

    Use the watch as a context manager around the command. It has no effect outside the main thread, and if the process
    ignores SIGINT, as a background job of a shell does. message: the message for the user.
    """

    def __init__(self, message: str) -> None:
        self.message, self.is_interrupted = message, False
        """The message, which may be replaced (`interruption_message`), and whether Ctrl-C was pressed."""
        self._stack = ExitStack()
        self._ended = threading.Event()
        self._cancellation = Cancellation()

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
            return self
        self._stack.enter_context(self._cancellation.active())
        previous = signal.signal(signal.SIGINT, self._handle)
        self._stack.callback(signal.signal, signal.SIGINT, previous)
        self._stack.enter_context(_signal_thread(self._react))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._stack.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.is_interrupted or _is_importing(frame):  # an import could swallow the exception, or abort the process
            self._note()
            self._end()
        self._note()
        raise KeyboardInterrupt

    def _note(self) -> None:
        if not self.is_interrupted:
            self.is_interrupted = True
            self.message = (_messages or [self.message])[-1]

    def _react(self, number: int) -> None:
        """React to a signal in the thread of the watch."""
        self._cancellation.cancel()
        if number == signal.SIGINT and not self._ended.wait(_SECONDS) and not _handlers:
            self._note()
            self._end()

    def _end(self) -> None:
        """Print the message, and end the process."""
        end_process(self.message)


def end_process(message: str) -> None:
    """Delete temporary files, print the message, and end the process with the exit code of Ctrl-C."""
    remove_live_temporaries()
    cursor = _SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""
    os.write(2, f"{cursor}{message}\n".encode())
    os._exit(EXIT_CODE)


@contextmanager
def interruptible(is_long: bool = True) -> Iterator[Cancellation | None]:
    """Yield the active cancellation or, in the main thread of another program, one that Ctrl-C cancels.

    For calls of compiled code, during which Python cannot handle signals. Yield None if there is no cancellation.
    is_long: whether the call may take more than a second. For other calls, starting a thread would take too long.
    """
    cancellation = active_cancellation()
    if (
        cancellation is not None
        or not is_long
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL, None)
    ):
        yield cancellation
        return
    cancellation = Cancellation()
    with _signal_thread(lambda number: cancellation.cancel()):
        yield cancellation


@contextmanager
def _signal_thread(react: Callable[[int], None]) -> Iterator[None]:
    """Call `react` in a thread as soon as the process receives SIGINT or SIGTERM, if it handles them."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    previous = signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def watch() -> None:
        while numbers := os.read(read, 64):
            for number in numbers:
                if previous >= 0:
                    os.write(previous, bytes([number]))
                if number in _SIGNALS:
                    react(number)

    thread = threading.Thread(target=watch, name="signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous, warn_on_full_buffer=False)
        os.close(write)
        thread.join()
        os.close(read)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
