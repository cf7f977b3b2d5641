"""`KeptFiles`: translated files, until they are fetched or too old."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple


class KeptFile(NamedTuple):
    """until: by the clock."""

    name: str
    content: bytes
    until: float


class KeptFiles:
    """In memory, bounded: no name that a client chose becomes a path. Safe between threads.

    Whoever has the id of a file, which nobody can guess, may fetch it as often as he likes.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """most: bytes of all together; the oldest goes first. seconds: how long each is kept."""
        self._most, self._seconds, self._clock = most, seconds, clock
        self._files: OrderedDict[str, KeptFile] = OrderedDict()
        self._lock = Lock()

    def keep(self, name: str, content: bytes) -> str:
        """The id of a file. One that is larger than all may be together is not kept."""
        id = secrets.token_urlsafe(24)
        with self._lock:
            self._files[id] = KeptFile(name, content, self._clock() + self._seconds)
            self._clean()
        return id

    def find(self, id: str) -> KeptFile | None:
        """None where there is none, or none any more."""
        with self._lock:
            self._clean()
            return self._files.get(id)

    def _clean(self) -> None:
        size = sum(len(each.content) for each in self._files.values())
        while self._files:
            first = next(iter(self._files.values()))
            if size <= self._most and first.until > self._clock():
                return
            size -= len(first.content)
            self._files.popitem(last=False)
