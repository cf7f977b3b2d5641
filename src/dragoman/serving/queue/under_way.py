"""`UnderWay`: lines that were taken from a queue and have no answer yet."""

from collections.abc import Sequence

from dragoman.serving.queue.cache import Cache
from dragoman.serving.queue.ticket import Found
from dragoman.serving.queue.waiting_lines import Taken, WaitingLines
from dragoman.translation.lines import Line


class UnderWay:
    """Each line once, whoever asked for it.

    The room that a line takes in the queue is free before anybody hears of it: an answer makes way at once.
    """

    def __init__(self, waiting: WaitingLines, cache: Cache) -> None:
        """cache: that is told what is found."""
        self._waiting, self._cache = waiting, cache
        self._held: set[Taken] = set()
        self._places: dict[Line, list[Taken]] = {}
        self.tokens = 0
        """Of the lines' sources."""

    @property
    def lines(self) -> list[Line]:
        """In the order in which they came."""
        return list(self._places)

    def add(self, taken: Sequence[Taken]) -> list[Line]:
        """The lines that are new. What nobody waits for any more leaves, and what was found meanwhile is answered."""
        self._held.update(taken)
        new = []
        for each in taken:
            if each.ticket.is_over:
                self._free(each)
                continue
            line = each.ticket.lines[each.place]
            if line not in self._places:
                if (known := self._cache.find(line)) is not None:
                    self._free(each)
                    each.ticket.give(each.place, known)
                    continue
                self._places[line] = []
                self.tokens += each.ticket.costs[each.place]
                new.append(line)
            self._places[line].append(each)
        return new

    def done(self, line: Line, found: Found | BaseException) -> int:
        """A line's hypotheses, or what is wrong with it; gives its source tokens."""
        places = self._places.pop(line)
        tokens = places[0].ticket.costs[places[0].place]
        self.tokens -= tokens
        if not isinstance(found, BaseException):
            self._cache.keep(line, found)
        for each in places:
            self._free(each)
            if isinstance(found, BaseException):
                each.ticket.fail(found)
            else:
                each.ticket.give(each.place, found)
        return tokens

    def fail(self, error: BaseException) -> None:
        """All that is left."""
        for each in tuple(self._held):
            self._free(each)
            each.ticket.fail(error)

    def _free(self, taken: Taken) -> None:
        self._held.remove(taken)
        self._waiting.free(taken)
