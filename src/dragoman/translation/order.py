"""Results in the order of their lines, and what is told of those that ended too early."""

from collections.abc import Iterator
from typing import TypeVar

from dragoman.base.log import warn
from dragoman.models.interface import LengthLimit
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
    """The lines whose translations a limit stopped before their end of sentence: how many, and the first of them."""

    def __init__(self, limit: LengthLimit) -> None:
        """limit: the model's for targets."""
        self._limit = limit
        self._counts = {False: 0, True: 0}  # by whether the model's positions ended
        self._first: dict[bool, list[int]] = {False: [], True: []}

    def look(self, line: int, best: Translation) -> None:
        """Remember the line if its translation is such a one."""
        if not best.finished:
            positions = self._limit.positions
            ended = positions is not None and len(best.ids) >= positions
            self._counts[ended] += 1
            if self._counts[ended] <= _SHOWN:
                self._first[ended].append(line)

    def report(self) -> None:
        """Warn of them, if there are any."""
        positions = f"the model's {self._limit.positions} target positions ({self._limit.setting})"
        for ended, reached in ((False, "the length limit"), (True, positions)):
            if count := self._counts[ended]:
                shown = ", ".join(map(str, self._first[ended])) + (" …" if count > _SHOWN else "")
                warn(f"{count:,} translation(s) reached {reached} and end unfinished: line {shown}")
