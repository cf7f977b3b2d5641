"""`Ticket`: lines that somebody waits for; `WaitingLines`: the queue of a model; `Cache`: what is known."""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Condition, Lock
from time import monotonic
from typing import NamedTuple

from dragoman.serving.errors import Overloaded
from dragoman.translation.request import Sampling, TextRequest
from dragoman.translation.result import Translation

Found = list[Translation]
"""The hypotheses of a line, the best first."""


class Ticket:
    """Lines, in order, and what becomes of them. Safe between threads.

    done: the hypotheses of all lines, or the error of the first that had one; whoever waits no more cancels it.
    """

    def __init__(
        self, lines: Sequence[TextRequest], costs: Sequence[int], tell: Callable[[int, Found], None] | None = None
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


class Taken(NamedTuple):
    """A line that is about to be translated: its ticket and its place there."""

    ticket: Ticket
    place: int


class WaitingLines:
    """Tickets take turns, a line each, so that a book does not keep a sentence waiting. Safe between threads.

    Room is reserved for all lines of a ticket at once, or for none, before any waits; so whatever comes together, no
    more than `most` tokens are ever taken in. It is free again line by line, as they are done, or at once when a ticket
    is cancelled.
    """

    def __init__(self, most: int) -> None:
        """most: tokens that wait or are being translated. An empty queue takes in any ticket."""
        self._most = most
        self._tickets: deque[tuple[Ticket, deque[int]]] = deque()
        self._changed = Condition()
        self._reserved = 0
        self._open = True

    @property
    def tokens(self) -> int:
        """That are taken in and not done."""
        return self._reserved

    @property
    def lines(self) -> int:
        """That wait."""
        with self._changed:
            return sum(len(places) for ticket, places in self._tickets if not ticket.is_over)

    def put(self, ticket: Ticket, places: Sequence[int]) -> None:
        """The lines at these places. Raises Overloaded where there is no room, or no more is taken in."""
        asked = sum(ticket.costs[place] for place in places)
        with self._changed:
            if not self._open:
                raise Overloaded("the server is about to end", retry_after=1)
            if self._reserved and self._reserved + asked > self._most:
                raise Overloaded("too much is waiting to be translated: try again later", retry_after=1)
            self._reserved += asked
            self._tickets.append((ticket, deque(places)))
            self._changed.notify()
        ticket.done.add_done_callback(lambda _: self._dropped(ticket))

    def take(self, tokens: int, lines: int, gather: float) -> list[Taken]:
        """Waits until there is a line, then takes as many as the budget allows, at least one. [] after the end.

        tokens, lines: the budget. gather: seconds to wait for more where lines of several tickets are there already.
        """
        with self._changed:
            while not self._tickets:
                if not self._open:
                    return []
                self._changed.wait()
            taken = self._some(tokens, lines)
            until = monotonic() + gather
            while gather and len({id(each.ticket) for each in taken}) > 1 and len(taken) < lines:
                tokens_left = tokens - sum(each.ticket.costs[each.place] for each in taken)
                if tokens_left <= 0 or not self._changed.wait_for(lambda: self._tickets, max(0.0, until - monotonic())):
                    break
                more = self._some(tokens_left, lines - len(taken), at_least_one=False)
                if not more:
                    break
                taken += more
            return taken

    def take_at_once(self, tokens: int, lines: int) -> list[Taken]:
        """As many of those that wait as the budget allows, which may be none."""
        with self._changed:
            return self._some(tokens, lines, at_least_one=False)

    def free(self, taken: Taken) -> None:
        """A line is done."""
        with self._changed:
            self._reserved -= taken.ticket.costs[taken.place]

    def close(self) -> None:
        """No more is taken in; what is there still goes out."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _some(self, tokens: int, lines: int, at_least_one: bool = True) -> list[Taken]:
        taken: list[Taken] = []
        while self._tickets and len(taken) < lines:
            ticket, places = self._tickets[0]
            cost = ticket.costs[places[0]]
            if cost > tokens and (taken or not at_least_one):
                break
            self._tickets.popleft()
            taken.append(Taken(ticket, places.popleft()))
            tokens -= cost
            if places:
                self._tickets.append((ticket, places))
        return taken

    def _dropped(self, ticket: Ticket) -> None:
        """Lines that still wait, though nobody waits for them, leave."""
        with self._changed:
            for number, (each, places) in enumerate(self._tickets):
                if each is ticket:
                    self._reserved -= sum(ticket.costs[place] for place in places)
                    del self._tickets[number]
                    return


class Cache:
    """The lines that were asked for last, with their hypotheses. Safe between threads."""

    def __init__(self, entries: int) -> None:
        """entries: lines at most; 0: none is kept."""
        self._entries = entries
        self._lines: OrderedDict[TextRequest, Found] = OrderedDict()
        self._lock = Lock()
        self.hits = 0

    def find(self, line: TextRequest) -> Found | None:
        """Its hypotheses, if they are known."""
        if not self._entries or not _is_kept(line):
            return None
        with self._lock:
            found = self._lines.get(line)
            if found is None:
                return None
            self.hits += 1
            self._lines.move_to_end(line)
            return found

    def keep(self, line: TextRequest, found: Found) -> None:
        """In place of the line that was not asked for the longest time."""
        if not self._entries or not _is_kept(line):
            return
        with self._lock:
            self._lines[line] = found
            self._lines.move_to_end(line)
            while len(self._lines) > self._entries:
                self._lines.popitem(last=False)


def _is_kept(line: TextRequest) -> bool:
    """A glossary is an object of its request, so lines that have one are never alike; what is drawn should differ."""
    _, request = line
    if isinstance(request.decoding, Sampling):
        return False
    return request.control is None or request.control.glossary is None
