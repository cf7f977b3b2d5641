"""`Batcher`: translates queued lines in batches on several threads. A batch mixes the lines of many clients."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from threading import Thread
from time import perf_counter
from typing import NamedTuple, Protocol

from dragoman.addons.serving.config import QueueConfig
from dragoman.addons.serving.errors import Overloaded
from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.line_queue import Cache, Hypotheses, LineQueue, QueuedLine, Ticket
from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.base.errors import DragomanError
from dragoman.data.workers import available_cores
from dragoman.inference.translation.continuous import ContinuousTranslation
from dragoman.inference.translation.request import TextRequest

_POLL_SECONDS = 0.005
"""Time in seconds to wait for completed lines before admitting further lines."""

_SHARED_LINES = 4
"""Number of lines per processor that several clients share (see `LineQueue`). A batch with more lines is hardly more
efficient, and delays each line."""

_CONTROL_LINES = 4
"""Number of lines with requirements that are taken at a time. It is small, so that tickets take turns, and that the
thread soon gives way to short requests."""


class Backend(Protocol):
    """Translates batches. `InProcessBackend` runs in the server process, `WorkerPool` in other processes."""

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        """Yield the hypotheses of each line, in order. If this raises an error, the caller retries line by line."""
        ...

    def continuous(self) -> ContinuousTranslation | None:
        """Return a batch that accepts further lines during decoding, or None if the engine does not support this."""
        ...

    def close(self) -> None:
        """Release all resources. Called when no translation is in progress."""
        ...


class BatchStatistics(NamedTuple):
    """Statistics of a batch.

    lines: the number of translated lines; tokens: the number of their source tokens; seconds: the elapsed time.
    concurrent_tokens: the maximum number of tokens that were decoded together.
    """

    lines: int
    tokens: int
    seconds: float
    concurrent_tokens: int


class BatchListener(Protocol):
    """Receives the statistics of each batch. A continuous batch reports once per `batch_lines` lines."""

    def __call__(self, batch: BatchStatistics) -> None: ...


class Batcher:
    """Translates the lines of a queue. Each thread translates one batch of waiting lines at a time.

    If the backend supports it, a batch admits further lines during decoding. Identical lines are translated once. An
    error in a line fails only the tickets that contain the line.

    Lines with requirements, such as a glossary, or a guard need expensive searches. If there is a separate backend for
    them, they have their own queue and background thread, so that other lines do not wait for them.
    """

    def __init__(
        self,
        backend: Backend,
        config: QueueConfig,
        listener: BatchListener = lambda batch: None,
        *,
        threads: int = 1,
        control_backend: Backend | None = None,
        background: Background | None = None,
    ) -> None:
        """threads: the number of batches that are translated in parallel.

        control_backend: the backend for lines with requirements; None: the same backend. background: lets its thread
        give way to short requests.
        """
        shared = max(1, min(config.batch_lines // 2, _SHARED_LINES * available_cores()))
        self.queue, self.control_queue = LineQueue(config.max_tokens, shared), LineQueue(config.max_tokens, shared)
        self._config, self._listener = config, listener
        self._current = backend, Cache(config.cache_entries)
        self._control_backend, self._background = control_backend, background or Background()
        self._threads = [Thread(target=self._run, name="translating", daemon=True) for _ in range(threads)]
        if control_backend is not None:
            self._threads.append(Thread(target=self._run_controls, name="translating controls", daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def backend(self) -> Backend:
        """The backend that translates the next batch."""
        return self._current[0]

    @property
    def cache(self) -> Cache:
        """The cached translations of the current backend."""
        return self._current[1]

    def submit(self, ticket: Ticket) -> None:
        """Queue the lines of a ticket. Cached translations are delivered at once. Raises Overloaded."""
        cache = self.cache
        cached = [cache.get(line) for line in ticket.lines]
        uncached = [index for index, translation in enumerate(cached) if translation is None]
        plain, controls = list[int](), list[int]()
        for index in uncached:
            is_separate = self._control_backend is not None and _is_control(ticket.lines[index])
            (controls if is_separate else plain).append(index)
        try:
            for queue, indices in ((self.queue, plain), (self.control_queue, controls)):
                if indices:
                    queue.put(ticket, indices)
        except Overloaded:
            ticket.done.cancel()
            raise
        for index, translation in enumerate(cached):
            if translation is not None:
                ticket.set_result(index, translation)

    def replace(self, backend: Backend, control_backend: Backend | None = None) -> None:
        """Replace the backends. Batches in progress finish on the old ones."""
        if self._control_backend is not None:
            self._control_backend = control_backend or backend
        self._current = backend, Cache(self._config.cache_entries)

    @property
    def is_alive(self) -> bool:
        """Whether all threads are running."""
        return all(thread.is_alive() for thread in self._threads)

    def close(self, seconds: float | None = None) -> None:
        """Translate all lines in the queue, then stop. seconds: the maximum waiting time; None for no limit."""
        self.queue.close()
        self.control_queue.close()
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        config = self._config
        while queued := self.queue.take(config.batch_tokens, config.batch_lines, config.gather_milliseconds / 1000):
            current = backend, cache = self._current
            in_flight = InFlight(self.queue, cache)
            try:
                lines = in_flight.add(queued)
                # a single line finishes earliest if all cores work on it
                batch = backend.continuous() if len(lines) > 1 else None
                if batch is not None:
                    with closing(batch):
                        self._translate_continuously(batch, lines, in_flight, current)
                for group in in_flight.groups():
                    self._translate_batch(backend, group, in_flight)
            except Exception as error:  # a bug may fail this batch, but must not end the thread
                in_flight.fail(error)

    def _run_controls(self) -> None:
        """Translate lines with requirements, one ticket at a time."""
        config = self._config
        while queued := self.control_queue.take(config.batch_tokens, min(config.batch_lines, _CONTROL_LINES), 0):
            backend = self._control_backend
            assert backend is not None
            in_flight = InFlight(self.control_queue, self._current[1])
            try:
                in_flight.add(queued)
                for group in in_flight.groups():
                    with self._background.thread():
                        self._translate_batch(backend, group, in_flight, self._background.pause)
                        self._background.repay()
            except Exception as error:  # a bug may fail this batch, but must not end the thread
                in_flight.fail(error)

    def _translate_continuously(
        self,
        batch: ContinuousTranslation,
        lines: list[TextRequest],
        in_flight: "InFlight",
        current: tuple[Backend, Cache],
    ) -> None:
        """Translate until no lines remain. Lines that the batch rejects or fails to translate stay in flight."""
        config, reporter = self._config, BatchReporter(self._listener)
        backlog = config.batch_lines // 2  # lines that wait within the batch, so that it is never idle between polls
        rejected = []
        try:
            while lines or batch.in_progress:
                rejected += batch.submit(lines) if lines else []
                reporter.record_start(in_flight.tokens)
                if abandoned := in_flight.abandoned():
                    batch.cancel(abandoned)
                lines = []
                for line, hypotheses in batch.completed(_POLL_SECONDS):
                    if hypotheses:
                        reporter.record_result(in_flight.finish(line, hypotheses), config.batch_lines)
                    elif not in_flight.drop(line):
                        lines.append(line)  # another client has requested the same line since it was cancelled
                if lines:
                    continue
                if batch.queued > backlog // 2:
                    time.sleep(_POLL_SECONDS)  # admitting several lines at once is cheaper than one at a time
                elif not rejected and current is self._current:
                    budget = config.batch_tokens - in_flight.tokens, backlog - batch.queued
                    queued = self.queue.take_available(*budget)
                    lines = in_flight.add(queued) if queued else []
        except DragomanError:  # a lack of memory or an error in one line: the caller retries the lines
            pass
        reporter.report()

    def _translate_batch(
        self,
        backend: Backend,
        lines: Sequence[TextRequest],
        in_flight: "InFlight",
        on_check: Callable[[], None] | None = None,
    ) -> None:
        """Translate a group of lines, until no ticket needs any of them. on_check: as in `Cancellation`.

        If the group fails, its remaining lines are translated one by one.
        """
        reporter, waiting = BatchReporter(self._listener), deque([lines])
        results: Iterator[Hypotheses] = iter(())
        reporter.record_start(in_flight.tokens)
        try:
            with in_flight.cancellation(lines, on_check).active():
                while waiting:
                    group = waiting.popleft()
                    for index, line in enumerate(group):
                        result: Hypotheses | Exception
                        try:
                            results = results if index else backend.translate(group)
                            result = next(results)
                        except Exception as error:
                            if len(group) > 1:
                                waiting.extend([each] for each in group[index:])
                                break
                            result = error
                        reporter.record_result(in_flight.finish(line, result), len(lines))
        except Cancelled:
            for line in lines:
                in_flight.drop(line)
        reporter.report()


class InFlight:
    """Lines that were taken from a queue and are not yet answered. Identical lines are translated once.

    Tokens are released before a ticket is answered, so that they are available to the client's next request.
    """

    def __init__(self, queue: LineQueue, cache: Cache) -> None:
        """cache: receives the results."""
        self._queue, self._cache = queue, cache
        self._unreleased: set[QueuedLine] = set()
        self._queued_by_request: dict[TextRequest, list[QueuedLine]] = {}
        self.tokens = 0
        """Number of source tokens of the lines."""

    def groups(self) -> list[list[TextRequest]]:
        """Return the lines in flight in groups that are translated, and cancelled, separately.

        Plain lines of all tickets form the first group. Lines with requirements or a guard, which may need several
        expensive searches, form one group per ticket.
        """
        groups: dict[int | None, list[TextRequest]] = {None: []}
        for line, queued_lines in self._queued_by_request.items():
            _, request = line
            is_plain = request.control is None and request.guard is None
            groups.setdefault(None if is_plain else id(queued_lines[0].ticket), []).append(line)
        return [lines for lines in groups.values() if lines]

    def cancellation(self, lines: Sequence[TextRequest], on_check: Callable[[], None] | None = None) -> Cancellation:
        """Return a cancellation that is cancelled as soon as no ticket needs any of these lines."""
        cancellation = Cancellation(on_check)
        tickets = {
            id(queued.ticket): queued.ticket for line in lines for queued in self._queued_by_request.get(line, ())
        }

        def check(_: object) -> None:
            if all(ticket.is_done for ticket in tickets.values()):
                cancellation.cancel()

        for ticket in tuple(tickets.values()):
            ticket.done.add_done_callback(check)
        return cancellation

    def abandoned(self) -> set[TextRequest]:
        """Return the lines that no ticket needs any more."""
        return {
            line
            for line, queued_lines in self._queued_by_request.items()
            if all(queued.ticket.is_done for queued in queued_lines)
        }

    def drop(self, line: TextRequest) -> bool:
        """Drop a line that is not translated. Return False, without any effect, if a ticket still needs it."""
        queued_lines = self._queued_by_request.get(line, [])
        if not all(queued.ticket.is_done for queued in queued_lines):
            return False
        if queued_lines:
            self.tokens -= queued_lines[0].cost
            del self._queued_by_request[line]
        for queued in queued_lines:
            self._release(queued)
        return True

    def add(self, queued: Sequence[QueuedLine]) -> list[TextRequest]:
        """Add lines and return those to translate, without withdrawn and cached lines and those already in flight."""
        self._unreleased.update(queued)
        new = []
        for queued_line in queued:
            if queued_line.ticket.is_done:
                self._release(queued_line)
                continue
            line = queued_line.line
            if line not in self._queued_by_request:
                if (cached := self._cache.get(line)) is not None:
                    self._release(queued_line)
                    queued_line.ticket.set_result(queued_line.position, cached)
                    continue
                self._queued_by_request[line] = []
                self.tokens += queued_line.cost
                new.append(line)
            self._queued_by_request[line].append(queued_line)
        return new

    def finish(self, line: TextRequest, result: Hypotheses | BaseException) -> int:
        """Deliver a line's hypotheses or error to all tickets that contain the line. Return its number of tokens."""
        queued_lines = self._queued_by_request.pop(line)
        tokens = queued_lines[0].cost
        self.tokens -= tokens
        if not isinstance(result, BaseException):
            self._cache.put(line, result)
        for queued_line in queued_lines:
            self._release(queued_line)
            if isinstance(result, BaseException):
                queued_line.ticket.fail(result)
            else:
                queued_line.ticket.set_result(queued_line.position, result)
        return tokens

    def fail(self, error: BaseException) -> None:
        """Fail all remaining lines."""
        for queued_line in tuple(self._unreleased):
            self._release(queued_line)
            queued_line.ticket.fail(error)

    def _release(self, line: QueuedLine) -> None:
        self._unreleased.remove(line)
        self._queue.release(line)


class BatchReporter:
    """Reports statistics to a listener, once per `batch_lines` lines."""

    def __init__(self, listener: BatchListener) -> None:
        self._listener, self._since = listener, perf_counter()
        self._lines = self._tokens = self._concurrent_tokens = 0

    def record_start(self, tokens: int) -> None:
        """Record the number of tokens in flight."""
        self._concurrent_tokens = max(self._concurrent_tokens, tokens)

    def record_result(self, tokens: int, batch_lines: int) -> None:
        """Record a translated line and its tokens. batch_lines: the number of lines per report."""
        self._lines, self._tokens = self._lines + 1, self._tokens + tokens
        if self._lines >= batch_lines:
            self.report()

    def report(self) -> None:
        """Report the lines recorded since the last report, if any."""
        if self._lines:
            now = perf_counter()
            statistics = BatchStatistics(self._lines, self._tokens, now - self._since, self._concurrent_tokens)
            self._listener(statistics)
            self._since, self._lines, self._tokens, self._concurrent_tokens = now, 0, 0, 0


def _is_control(line: TextRequest) -> bool:
    """Return whether a line has requirements or a guard, which may need several expensive searches."""
    return line[1].control is not None or line[1].guard is not None
