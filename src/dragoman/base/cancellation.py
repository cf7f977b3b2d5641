"""`Cancellation`: stops long computations whose result is no longer needed.

The caller activates a `Cancellation` for a computation, and may cancel it in any thread. The computation calls
`check_cancelled` in every loop that can be long. Contexts (`contextvars`) pass the active cancellation on, so that no
function needs a parameter for it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from threading import TIMEOUT_MAX, Lock, Timer
from typing import TypeVar

Item = TypeVar("Item")


class Cancelled(BaseException):
    """The computation was cancelled.

    Like `asyncio.CancelledError`, this is not an `Exception`, so that handlers of errors do not catch it.
    """


class Cancellation:
    """A flag that is set once, when the result of a computation is no longer needed. Thread-safe."""

    def __init__(self, on_check: Callable[[], None] | None = None) -> None:
        """on_check: called whenever the computation checks the flag, for example to let other threads run."""
        self.on_check = on_check
        self.is_cancelled = False
        """Whether `cancel` was called."""
        self._callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    def cancel(self) -> None:
        """Set the flag and call the callbacks. Further calls have no effect."""
        with self._lock:
            self.is_cancelled, callbacks = True, self._callbacks
            self._callbacks = []
        for callback in callbacks:
            callback()

    @contextmanager
    def callback(self, function: Callable[[], None]) -> Iterator[None]:
        """Call `function` once if the computation is cancelled within the `with` block, in the cancelling thread.

        For computations that cannot call `check_cancelled`, such as compiled code. If the flag is already set, the
        function is called at once.
        """
        with self._lock:
            is_cancelled = self.is_cancelled
            if not is_cancelled:
                self._callbacks.append(function)
        if is_cancelled:
            function()
        try:
            yield
        finally:
            with self._lock:
                if function in self._callbacks:
                    self._callbacks.remove(function)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this the cancellation of all computations within the `with` block."""
        token = _ACTIVE.set(self)
        try:
            yield
        finally:
            _ACTIVE.reset(token)


_ACTIVE: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def active_cancellation() -> Cancellation | None:
    """Return the active cancellation, or None if the computation cannot be cancelled."""
    return _ACTIVE.get()


def check_cancelled() -> None:
    """Raise Cancelled if the active cancellation was cancelled. Takes about 50 ns, plus the time of `on_check`."""
    cancellation = _ACTIVE.get()
    if cancellation is None:
        return
    if cancellation.on_check is not None and not cancellation.is_cancelled:
        cancellation.on_check()
    if cancellation.is_cancelled:
        raise Cancelled


def until_cancelled(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items. Raises Cancelled before the next item once the active cancellation is cancelled."""
    for item in items:
        check_cancelled()
        yield item


class TimeLimit(Cancellation):
    """A cancellation that is set when a time has passed."""

    has_passed = False
    """Whether the time has passed. The limit may also be cancelled by an outer cancellation."""

    def end(self) -> None:
        """Cancel the computation because the time has passed."""
        self.has_passed = True
        self.cancel()


@contextmanager
def time_limit(seconds: float | None) -> Iterator[TimeLimit]:
    """Cancel the computations within the `with` block after some time, or with the outer cancellation.

    The computations raise Cancelled; `has_passed` states whether because of the time. seconds: None: no limit.
    """
    limit, outer = TimeLimit(), _ACTIVE.get()
    if seconds is None:
        yield limit
        return
    timer = Timer(min(max(0.0, seconds), TIMEOUT_MAX), limit.end)
    timer.daemon = True
    with limit.active(), nullcontext() if outer is None else outer.callback(limit.cancel):
        timer.start()
        try:
            yield limit
        finally:
            timer.cancel()
