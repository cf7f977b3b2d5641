"""`Background`: long work in threads, which gives way to short requests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.data.workers import available_cores

_FRACTION = 0.125
"""Fraction of the processors that all background threads together may use while short requests are in progress."""

_RUN_SECONDS, _LONGEST_PAUSE = 0.002, 0.05
"""Processor time after which a thread pauses, and the maximum time after which it checks for a cancellation."""


_MOST_DEBT = 1.0
"""Maximum time in seconds that a thread pauses for one run of compiled code, however long the run was."""


class Background:
    """The threads that prepare long texts and documents, and that search with constraints.

    Python runs one thread at a time, and processors are shared too, so that a few threads with long work would delay
    every step of a short request. While short requests are in progress, these threads therefore run only for a
    fraction of the time: each pauses in `pause`, which long computations call through `check_cancelled`.
    """

    def __init__(self, cores: int | None = None) -> None:
        """cores: number of processors; None for those of this process."""
        self._fraction = _FRACTION * (cores or available_cores())
        self._lock = threading.Lock()
        self._short = self._threads = 0
        self._no_short_requests = threading.Event()
        self._no_short_requests.set()
        self._local = threading.local()

    @contextmanager
    def short_request(self) -> Iterator[None]:
        """Let background threads give way during the `with` block."""
        self._count_short(1)
        try:
            yield
        finally:
            self._count_short(-1)

    @contextmanager
    def thread(self) -> Iterator[None]:
        """Count the calling thread as a background thread during the `with` block."""
        self._local.wall, self._local.cpu = time.monotonic(), time.thread_time()
        with self._lock:
            self._threads += 1
        try:
            yield
        finally:
            with self._lock:
                self._threads -= 1

    def pause(self) -> None:
        """Pause the calling thread if it has run for a while and short requests are in progress. Takes about 100 ns.

        The time of all background threads together stays within their fraction. The thread continues when no short
        request is in progress, and after at most `_LONGEST_PAUSE` seconds, so that its caller can check for a
        cancellation; the next call continues the pause.
        """
        local, now = self._local, time.monotonic()
        if now - getattr(local, "wall", 0.0) < _RUN_SECONDS:
            return
        debt = getattr(local, "debt", 0.0)
        cpu = time.thread_time()
        debt += (cpu - getattr(local, "cpu", cpu)) * max(0.0, max(1, self._threads) / self._fraction - 1)
        if debt > 0 and not self._no_short_requests.is_set():
            self._no_short_requests.wait(min(debt, _LONGEST_PAUSE))
            debt -= time.monotonic() - now
        if self._no_short_requests.is_set():
            debt = 0.0
        local.debt, local.cpu = min(max(0.0, debt), _MOST_DEBT), time.thread_time()
        local.wall = time.monotonic() if local.debt == 0.0 else 0.0

    def repay(self) -> None:
        """Pause the calling thread until it has paused long enough, or no short request is in progress.

        For threads that call compiled code, which does not call `pause`.
        """
        self._local.wall = 0.0
        self.pause()
        while self._local.debt > 0:
            self.pause()

    def _count_short(self, change: int) -> None:
        with self._lock:
            self._short += change
            if self._short:
                self._no_short_requests.clear()
            else:
                self._no_short_requests.set()
