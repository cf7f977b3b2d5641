"""The queue of a served model: `Ticket` (the lines of a request), `LineQueue` (limited in tokens) and `Cache`."""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Condition, Lock
from time import monotonic
from typing import NamedTuple

from dragoman.serving.errors import Overloaded, QueueFull
from dragoman.translation.request import Sampling, TextRequest
from dragoman.translation.result import Translation

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
    ) -> None:
        """costs: the number of tokens of each line. on_result: receives the index and the hypotheses of each line.

        on_result is called in any thread.
        """
        self.lines, self.costs = lines, costs
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
        if complete:
            with suppress(InvalidStateError):  # the ticket was cancelled or failed in the meantime
                self.done.set_result([self._results[index] for index in range(len(self.lines))])

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


class LineQueue:
    """A thread-safe queue of lines that wait for a model, with a limit on their tokens.

    Tickets take turns line by line, so that a single sentence does not wait for a whole book. A ticket is admitted as a
    whole or rejected, so that concurrent requests never exceed the capacity. A line's tokens are released when the line
    has been translated, or when its ticket is cancelled while the line is waiting.
    """

    def __init__(self, capacity: int) -> None:
        """capacity: the maximum number of tokens that are waiting or being translated.

        An empty queue admits any ticket, whatever its size.
        """
        self._capacity = capacity
        self._tickets: deque[tuple[Ticket, deque[int]]] = deque()
        self._changed = Condition()
        self._tokens = 0
        self._open = True
        self._progressed_at = monotonic()

    @property
    def tokens(self) -> int:
        """The number of tokens that were admitted and not yet released."""
        return self._tokens

    @property
    def lines(self) -> int:
        """The number of waiting lines."""
        with self._changed:
            return sum(len(indices) for ticket, indices in self._tickets if not ticket.is_done)

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
            if self._tokens and self._tokens + tokens > self._capacity:
                raise QueueFull("the queue is full: try again later", retry_after=1)
            if not self._tokens:
                self._progressed_at = monotonic()
            self._tokens += tokens
            self._tickets.append((ticket, deque(indices)))
            self._changed.notify()
        ticket.done.add_done_callback(lambda _: self._withdraw(ticket))

    def take(self, tokens: int, lines: int, gather: float) -> list[QueuedLine]:
        """Wait for a line, then take as many lines as the budget allows, but at least one.

        tokens, lines: the budget. gather: seconds to wait for further lines if the lines come from several tickets.
        Returns [] if the queue is closed and empty.
        """
        with self._changed:
            while not self._tickets:
                if not self._open:
                    return []
                self._changed.wait()
            batch = self._take(tokens, lines)
            deadline = monotonic() + gather
            while gather and len({id(line.ticket) for line in batch}) > 1 and len(batch) < lines:
                remaining = tokens - sum(line.cost for line in batch)
                if remaining <= 0 or not self._changed.wait_for(
                    lambda: self._tickets, max(0.0, deadline - monotonic())
                ):
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

    def close(self) -> None:
        """Stop admitting lines. Waiting lines can still be taken."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _take(self, tokens: int, lines: int, at_least_one: bool = True) -> list[QueuedLine]:
        batch: list[QueuedLine] = []
        while self._tickets and len(batch) < lines:
            ticket, indices = self._tickets[0]
            cost = ticket.costs[indices[0]]
            if cost > tokens and (batch or not at_least_one):
                break
            self._tickets.popleft()
            self._progressed_at = monotonic()
            batch.append(QueuedLine(ticket, indices.popleft()))
            tokens -= cost
            if indices:
                self._tickets.append((ticket, indices))
        return batch

    def _withdraw(self, ticket: Ticket) -> None:
        """Drop the waiting lines of a ticket that needs no further results."""
        with self._changed:
            for number, (other, indices) in enumerate(self._tickets):
                if other is ticket:
                    self._tokens -= sum(ticket.costs[index] for index in indices)
                    del self._tickets[number]
                    return


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
