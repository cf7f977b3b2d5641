"""Results in the order of their lines, and what is told of those that ended too early."""

from collections.abc import Iterator
from typing import TypeVar

from dragoman.base.log import warn
from dragoman.models.limits import LengthLimit
from dragoman.translation.result import Translation

Result = TypeVar("Result")

_SHOWN = 10


def in_order(count: int, known: dict[int, Result], found: Iterator[tuple[int, Result]]) -> Iterator[Result]:
    """The results of places 0 to count − 1, each as soon as those before it are there.

    known: those that are there already; found: the places and results of the others, in any order.
    """
    waiting = dict(known)
    for place in range(count):
        while place not in waiting:
            try:
                other, result = next(found)
            except StopIteration:
                raise RuntimeError(f"the engine gave nothing for place {place} of {count}") from None
            waiting[other] = result
        yield waiting.pop(place)


class Unfinished:
    """The lines whose translations a limit stopped before their end of sentence."""

    def __init__(self, limit: LengthLimit) -> None:
        """limit: the model's for targets."""
        self._limit = limit
        self._too_long: list[int] = []
        self._out_of_positions: list[int] = []

    def look(self, line: int, best: Translation) -> None:
        """Remember the line if its translation is such a one."""
        if not best.finished:
            positions = self._limit.positions
            ended = positions is not None and len(best.ids) >= positions
            (self._out_of_positions if ended else self._too_long).append(line)

    def report(self) -> None:
        """Warn of them, if there are any."""
        positions = f"the model's {self._limit.positions} target positions ({self._limit.setting})"
        for lines, reached in ((self._too_long, "the length limit"), (self._out_of_positions, positions)):
            if lines:
                shown = ", ".join(map(str, lines[:_SHOWN])) + (" …" if len(lines) > _SHOWN else "")
                warn(f"{len(lines)} translation(s) reached {reached} and end unfinished: line {shown}")
