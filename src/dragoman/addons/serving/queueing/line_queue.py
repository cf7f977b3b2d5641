"""The queue of a served model: `Ticket` (the lines of a request), `LineQueue` (limited in tokens) and `Cache`."""

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from math import inf
from threading import Condition, Lock
from time import monotonic
from typing import NamedTuple

from dragoman.addons.serving.errors import Overloaded, QueueFull
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import TextRequest
from dragoman.inference.translation.result import Translation

Hypotheses = list[Translation]
"""The hypotheses of a line, best first."""


class Ticket:
    """The lines of a request. Thread-safe.

    done: a future of the hypotheses of all lines, in order, or of the error of the first line that failed. Cancelling
    the future withdraws the lines.
    """

    def __init__(
        self,
        lines: Sequence[TextRequest],
        costs: Sequence[int],
        on_result: Callable[[int, Hypotheses], None] | None = None,
        client: str | None = None,
    ) -> None:
        """costs: the number of tokens of each line. on_result: receives the index and the hypotheses of each line.

        on_result is called in any thread. client: the name of the client; None if it shares its turns with no ticket.
        """
        self.lines, self.costs, self.client = lines, costs, client
        self.done: Future[list[Hypotheses]] = Future()
        self._on_result, self._lock = on_result, Lock()
        self._results: dict[int, Hypotheses] = {}
        if not lines:
            self.done.set_result([])

    @property
    def is_done(self) -> bool:
        """Whether the ticket needs no further results, because it is complete, failed or cancelled."""
        return self.done.done()

    def set_result(self, index: int, hypotheses: Hypotheses) -> None:
        """Deliver the hypotheses of a line."""
        if self.is_done:
            return
        if self._on_result is not None:
            self._on_result(index, hypotheses)
        with self._lock:
            self._results[index] = hypotheses
            complete = len(self._results) == len(self.lines)
            if complete:  # callbacks of `done` refer to the ticket until the next garbage collection
                results, self._results, self._on_result = self._results, {}, None
        if complete:
            with suppress(InvalidStateError):  # the ticket was cancelled or failed in the meantime
                self.done.set_result([results[index] for index in range(len(self.lines))])

    def fail(self, error: BaseException) -> None:
        """Fail the ticket because one or all of its lines cannot be translated."""
        with suppress(InvalidStateError):
            self.done.set_exception(error)


class QueuedLine(NamedTuple):
    """A line of a ticket. position: its index in the ticket."""

    ticket: Ticket
    position: int

    @property
    def line(self) -> TextRequest:
        """The text and its request."""
        return self.ticket.lines[self.position]

    @property
    def cost(self) -> int:
        """Number of its source tokens."""
        return self.ticket.costs[self.position]


class _Client:
    """The lines of a client.

    served: the work that was done for the client, in the virtual time of `LineQueue`. in_flight, hypotheses: the number
    of its lines that were taken and not yet released, and the sum of their beams.
    """

    def __init__(self, served: float) -> None:
        self.served = served
        self.tickets: deque[tuple[Ticket, deque[int]]] = deque()
        self.in_flight = self.hypotheses = 0
        self.is_scheduled = False

    @property
    def has_several_lines(self) -> bool:
        """Whether further lines wait after the next one, or lines are in flight."""
        return self.in_flight > 0 or len(self.tickets) > 1 or (bool(self.tickets) and len(self.tickets[0][1]) > 1)


class LineQueue:
    """A thread-safe queue of lines that wait for a model, with a limit on their tokens.

    Clients receive equal shares of the model's work: the next line is that of the client for whom the least work was
    done. The work for a line is estimated by its tokens and its beam. Time that a client has not used is not saved, so
    that its lines wait for at most one line of each other client (start-time fair queuing, Goyal, Vin and Cheng 1996).
    The tickets of a client take turns line by line, so that a single sentence does not wait for a whole book. While
    several clients have lines, each can have only a share of a batch, because a full batch delays every line in it.

    While single lines of clients without further lines arrive too, clients with waiting lines together have at most
    half of a batch, and a quarter of it if there are many single lines, because a single line should not wait for the
    many hypotheses of others in each step.

    A ticket is admitted as a whole or rejected, so that concurrent requests never exceed the capacity. A part of the
    capacity is reserved for clients without waiting lines. A line's tokens are released when the line has been
    translated, or when its ticket is cancelled while the line is waiting.
    """

    def __init__(self, capacity: int, shared_lines: int = 32) -> None:
        """capacity: the maximum number of tokens that are waiting or being translated.

        shared_lines: while several clients have lines, the number of lines of which each client can have an equal share
        at the same time; a line counts more with a larger beam than 4, and less with a smaller one.

        An empty queue admits any ticket, whatever its size.
        """
        self._capacity, self._shared_lines = capacity, shared_lines
        self._clients: dict[object, _Client] = {}
        """Clients with waiting lines, and those that have received more work than others, by name or ticket."""
        self._schedule: list[tuple[float, int, object]] = []
        """A heap of the clients with waiting lines: work, a number that makes earlier entries smaller, and key."""
        self._numbers, self._time = count(), 0.0
        self._lines = 0
        self._changed = Condition()
        self._tokens = 0
        self._single_line_at = -_SINGLE_LINE_SECONDS
        """When the last line of a client without further lines was taken."""
        self._open = True
        self._progressed_at = monotonic()

    @property
    def tokens(self) -> int:
        """The number of tokens that were admitted and not yet released."""
        return self._tokens

    @property
    def lines(self) -> int:
        """The number of waiting lines."""
        return self._lines

    @property
    def is_full(self) -> bool:
        """Whether no further ticket can be admitted."""
        return self._tokens >= self._capacity

    @property
    def stalled_seconds(self) -> float:
        """Seconds since a line was last taken or released while other lines wait; 0 if the queue is empty."""
        return monotonic() - self._progressed_at if self._tokens else 0.0

    def put(self, ticket: Ticket, indices: Sequence[int]) -> None:
        """Admit some lines of a ticket. Raises QueueFull, and Overloaded if the queue is closed."""
        tokens = sum(ticket.costs[index] for index in indices)
        with self._changed:
            if not self._open:
                raise Overloaded("the server is shutting down", retry_after=1)
            key = _client_key(ticket)
            has_waiting_lines = key in self._clients and bool(self._clients[key].tickets)
            capacity = self._capacity * (_BACKLOG_FRACTION if has_waiting_lines else 1.0)
            if self._tokens and self._tokens + tokens > capacity:
                raise QueueFull("the queue is full: try again later", retry_after=1)
            if not self._tokens:
                self._progressed_at = monotonic()
            self._tokens += tokens
            self._lines += len(indices)
            client = self._clients.setdefault(key, _Client(self._time))
            client.tickets.append((ticket, deque(indices)))
            self._schedule_client(key, client)
            self._changed.notify()
        ticket.done.add_done_callback(lambda _: self._withdraw(ticket))

    def take(self, tokens: int, lines: int, gather: float) -> list[QueuedLine]:
        """Wait for a line, then take as many lines as the budget allows, but at least one.

        tokens, lines: the budget. gather: seconds to wait for further lines if the lines come from several tickets.
        Returns [] if the queue is closed and empty.
        """
        with self._changed:
            while not self._lines:
                if not self._open:
                    return []
                self._changed.wait()
            batch = self._take(tokens, lines)
            deadline = monotonic() + gather
            while gather and len({id(line.ticket) for line in batch}) > 1 and len(batch) < lines:
                remaining = tokens - sum(line.cost for line in batch)
                if remaining <= 0 or not self._changed.wait_for(lambda: self._lines, max(0.0, deadline - monotonic())):
                    break
                further = self._take(remaining, lines - len(batch), at_least_one=False)
                if not further:
                    break
                batch += further
            return batch

    def take_available(self, tokens: int, lines: int) -> list[QueuedLine]:
        """Take as many waiting lines as the budget allows, without blocking. The result may be empty."""
        with self._changed:
            return self._take(tokens, lines, at_least_one=False)

    def release(self, line: QueuedLine) -> None:
        """Release the tokens of a line that has been answered."""
        with self._changed:
            self._tokens -= line.cost
            self._progressed_at = monotonic()
            key = _client_key(line.ticket)
            if (client := self._clients.get(key)) is not None:
                client.in_flight -= 1
                client.hypotheses -= _beam(line)
                self._forget(key, client)
            if not self._tokens:  # no client has to wait for another one
                self._clients.clear()
                self._schedule.clear()

    def close(self) -> None:
        """Stop admitting lines. Waiting lines can still be taken."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _take(self, tokens: int, lines: int, at_least_one: bool = True) -> list[QueuedLine]:
        batch: list[QueuedLine] = []
        share, backlog, waiting = self._share(), self._backlog(), list[tuple[float, int, object]]()
        while self._schedule and len(batch) < lines:
            _, _, key = self._schedule[0]
            client, must_take = self._clients[key], at_least_one and not batch
            exceeds_share = client.hypotheses >= share or (backlog <= 0 and client.has_several_lines)
            if client.tickets and exceeds_share and not must_take:
                waiting.append(heappop(self._schedule))
                continue
            if client.tickets and client.tickets[0][0].costs[client.tickets[0][1][0]] > tokens and not must_take:
                break
            heappop(self._schedule)
            client.is_scheduled = False
            if client.tickets:  # otherwise, they were withdrawn
                if client.has_several_lines:
                    line = self._take_line(client)
                    backlog -= _beam(line)
                else:
                    line = self._take_line(client)
                    self._single_line_at = monotonic()
                batch.append(line)
                tokens -= line.cost
            self._schedule_client(key, client)
        for entry in waiting:
            heappush(self._schedule, entry)
        if len(self._clients) > 2 * len(self._schedule) + _IDLE_CLIENTS:
            for key, client in tuple(self._clients.items()):
                self._forget(key, client)
        return batch

    def _share(self) -> int:
        """Return the number of hypotheses of a client in flight from which it must wait."""
        active = sum(1 for client in self._clients.values() if client.tickets or client.in_flight)
        return max(1, _BEAM * self._shared_lines // active) if active > 1 else sys.maxsize

    def _backlog(self) -> float:
        """Return the number of hypotheses that clients with waiting lines may still have in flight.

        They use what single lines leave of a batch, but at least an eighth and at most half of it.
        """
        if monotonic() - self._single_line_at > _SINGLE_LINE_SECONDS:
            return inf
        clients, all_hypotheses = self._clients.values(), _BEAM * self._shared_lines
        in_flight = sum(client.hypotheses for client in clients if client.tickets)
        single = sum(client.hypotheses for client in clients if not client.tickets)
        return max(all_hypotheses // 8, min(all_hypotheses // 2, all_hypotheses - single)) - in_flight

    def _take_line(self, client: _Client) -> QueuedLine:
        """Take the next line of a client."""
        ticket, indices = client.tickets.popleft()
        line = QueuedLine(ticket, indices.popleft())
        if indices:
            client.tickets.append((ticket, indices))
        self._lines -= 1
        self._progressed_at = monotonic()
        self._time = max(self._time, client.served)
        client.served += _estimate_work(line)
        client.in_flight += 1
        client.hypotheses += _beam(line)
        return line

    def _schedule_client(self, key: object, client: _Client) -> None:
        """Enter a client into the schedule if it has waiting lines."""
        if client.tickets and not client.is_scheduled:
            client.served = max(client.served, self._time)
            client.is_scheduled = True
            heappush(self._schedule, (client.served, next(self._numbers), key))
        self._forget(key, client)

    def _forget(self, key: object, client: _Client) -> None:
        """Remove a client without lines, unless it must wait for the others' turns when it returns."""
        if client.tickets or client.in_flight or client.is_scheduled:
            return
        if not isinstance(key, str) or client.served <= self._time:
            self._clients.pop(key, None)

    def _withdraw(self, ticket: Ticket) -> None:
        """Drop the waiting lines of a ticket that needs no further results."""
        with self._changed:
            client = self._clients.get(_client_key(ticket))
            for number, (other, indices) in enumerate(() if client is None else client.tickets):
                if other is ticket:
                    assert client is not None
                    self._tokens -= sum(ticket.costs[index] for index in indices)
                    self._lines -= len(indices)
                    del client.tickets[number]
                    return


_BEAM = 4
"""The beam of a line that counts as one of the lines that clients share."""

_SINGLE_LINE_SECONDS = 1.0
"""Time after a single line during which clients with waiting lines have at most half of a batch."""

_BACKLOG_FRACTION = 0.75
"""Fraction of the capacity that clients with waiting lines can fill."""

_IDLE_CLIENTS = 256
"""Number of clients without lines from which those that need no longer wait for others are forgotten."""


def _client_key(ticket: Ticket) -> object:
    """Return the key of a ticket's client: its name, or the ticket itself."""
    return ticket if ticket.client is None else ticket.client


def _estimate_work(line: QueuedLine) -> int:
    """Return the estimated work for a line: its tokens, for each hypothesis of the beam."""
    return line.cost * _beam(line)


def _beam(line: QueuedLine) -> int:
    """Return the number of hypotheses that a line's search extends at the same time."""
    decoding = line.line[1].decoding
    return decoding.beam if isinstance(decoding, SearchConfig) else 1


class Cache:
    """A thread-safe cache of the most recently requested lines and their hypotheses."""

    def __init__(self, entries: int) -> None:
        """entries: the maximum number of lines; 0 disables the cache."""
        self._entries = entries
        self._lines: OrderedDict[TextRequest, Hypotheses] = OrderedDict()
        self._lock = Lock()
        self.hits = 0

    def get(self, line: TextRequest) -> Hypotheses | None:
        """Return the hypotheses of a line, or None if they are not cached."""
        if not self._entries or not _is_cacheable(line):
            return None
        with self._lock:
            hypotheses = self._lines.get(line)
            if hypotheses is None:
                return None
            self.hits += 1
            self._lines.move_to_end(line)
            return hypotheses

    def put(self, line: TextRequest, hypotheses: Hypotheses) -> None:
        """Cache the hypotheses of a line. A full cache drops the least recently requested line."""
        if not self._entries or not _is_cacheable(line):
            return
        with self._lock:
            self._lines[line] = hypotheses
            self._lines.move_to_end(line)
            while len(self._lines) > self._entries:
                self._lines.popitem(last=False)


def _is_cacheable(line: TextRequest) -> bool:
    """Return whether a cached line can be reused. Glossaries compare by identity, and samples should differ."""
    _, request = line
    if isinstance(request.decoding, Sampling):
        return False
    return request.control is None or request.control.glossary is None
