"""`Model`: what translates the lines of a queue."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from dragoman.serving.queue.ticket import Found
from dragoman.translation.lines import Line

Translate = Callable[[Sequence[Line]], Iterator[Found]]
"""The hypotheses of each line, in order. What is wrong with one line may raise, and costs the batch a second try."""


class Continuous(Protocol):
    """A batch that takes in lines while it is computed, such as `translation.continuous.ContinuousTranslation`."""

    @property
    def waiting(self) -> int:
        """Lines that were not begun with when it was last asked what is found."""
        ...

    @property
    def under_way(self) -> int:
        """Lines that were given, and not found."""
        ...

    def put(self, lines: Sequence[Line]) -> list[Line]:
        """Those that it does not take."""
        ...

    def found(self, seconds: float) -> list[tuple[Line, Found]]:
        """Lines that are done since the last time, and their hypotheses; waits so long for one."""
        ...

    def close(self) -> None:
        """What is not done is given up."""
        ...


def _never() -> None:
    """No batch takes in lines while it is computed."""


class Model(NamedTuple):
    """continuous: opens a batch that takes in lines while it is computed; gives None where there is no such thing."""

    translate: Translate
    continuous: Callable[[], Continuous | None] = _never
