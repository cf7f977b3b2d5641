"""`Ticket`: lines that somebody waits for."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Lock

from dragoman.translation.lines import Line
from dragoman.translation.result import Translation

Found = list[Translation]
"""The hypotheses of a line, the best first."""


class Ticket:
    """Lines, in order, and what becomes of them. Safe between threads.

    done: the hypotheses of all lines, or the error of the first that had one; whoever waits no more cancels it.
    """

    def __init__(
        self, lines: Sequence[Line], costs: Sequence[int], tell: Callable[[int, Found], None] | None = None
    ) -> None:
        """costs: tokens of each line; tell: is called with each line's place and hypotheses as they are found."""
        self.lines, self.costs = lines, costs
        self.done: Future[list[Found]] = Future()
        self._tell, self._lock = tell, Lock()
        self._found: dict[int, Found] = {}
        if not lines:
            self.done.set_result([])

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for its lines any more."""
        return self.done.done()

    def give(self, place: int, found: Found) -> None:
        """A line's hypotheses."""
        if self.is_over:
            return
        if self._tell is not None:
            self._tell(place, found)
        with self._lock:
            self._found[place] = found
            complete = len(self._found) == len(self.lines)
        if complete:
            with suppress(InvalidStateError):  # nobody waits any more
                self.done.set_result([self._found[each] for each in range(len(self.lines))])

    def fail(self, error: BaseException) -> None:
        """What was wrong with a line, or with all."""
        with suppress(InvalidStateError):
            self.done.set_exception(error)
