"""Translations that are interrupted."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from dragoman.base.progress import Progress


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let the next command receive a signal after a line within a window."""
    tell, signals = Progress.update, dict[int, int]()

    def telling(progress: Progress, done: int, said: str = "", total: int | None = None) -> None:
        tell(progress, done, said, total)
        if (number := signals.pop(done, None)) is not None:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Progress, "update", telling)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    yield lambda line, number=signal.SIGINT: signals.update({line: number})
    signal.signal(signal.SIGINT, before)
