"""`WaitingLines`: the queue of a model, bounded in tokens."""

from collections import deque
from collections.abc import Sequence
from threading import Condition
from time import monotonic
from typing import NamedTuple

from dragoman.serving.errors import Overloaded
from dragoman.serving.queue.ticket import Ticket


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
