"""`Batcher`: threads that translate the lines of a queue in batches, which mix the lines of many clients."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from threading import Thread
from time import perf_counter
from typing import NamedTuple, Protocol

from dragoman.base.errors import DragomanError
from dragoman.serving.config import QueueConfig
from dragoman.serving.queue import Cache, Hypotheses, LineQueue, QueuedLine, Ticket
from dragoman.translation.continuous import ContinuousTranslation
from dragoman.translation.request import TextRequest

_POLL_SECONDS = 0.005
"""How long to wait for completed lines before admitting further ones."""


class Backend(Protocol):
    """Translates batches: `InProcessBackend` in the server's own process, `WorkerPool` in others."""

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        """Yield the hypotheses of each line in order. Raises the error of any line, whose batch is then retried."""
        ...

    def continuous(self) -> ContinuousTranslation | None:
        """Start a batch that accepts further lines while it is decoded; None if the engine does not support this."""
        ...

    def close(self) -> None:
        """Release all resources. Called when no translation is in progress."""
        ...


class BatchStatistics(NamedTuple):
    """Translated lines, their source tokens, the time in seconds, and the maximum number of tokens decoded together."""

    lines: int
    tokens: int
    seconds: float
    concurrent_tokens: int


class BatchListener(Protocol):
    """Receives the statistics of each batch. A continuous batch reports once per batch's worth of lines."""

    def __call__(self, batch: BatchStatistics) -> None: ...


class Batcher:
    """A queue, and threads that each translate one batch at a time, built from the lines that are waiting.

    If the backend supports it, a batch admits lines while others are being decoded. Identical lines are translated
    once. An error in a line fails only its own ticket.
    """

    def __init__(
        self, backend: Backend, config: QueueConfig, listener: BatchListener = lambda batch: None, threads: int = 1
    ) -> None:
        """threads: the number of batches that are translated in parallel."""
        self.queue = LineQueue(config.most_tokens)
        self._config, self._listener = config, listener
        self._current = backend, Cache(config.cache_entries)
        self._threads = [Thread(target=self._run, name="translating", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    @property
    def backend(self) -> Backend:
        """The backend of the next batch."""
        return self._current[0]

    @property
    def cache(self) -> Cache:
        """The cached translations of that backend."""
        return self._current[1]

    def submit(self, ticket: Ticket) -> None:
        """Queue the lines of a ticket; cached ones are delivered at once. Raises Overloaded."""
        cache = self.cache
        cached = [cache.get(line) for line in ticket.lines]
        if missing := [index for index, each in enumerate(cached) if each is None]:
            self.queue.put(ticket, missing)
        for index, each in enumerate(cached):
            if each is not None:
                ticket.set_result(index, each)

    def replace(self, backend: Backend) -> None:
        """Use another backend from the next batch on; batches in progress finish with the old one."""
        self._current = backend, Cache(self._config.cache_entries)

    def close(self) -> None:
        """Translate all lines in the queue, then stop."""
        self.queue.close()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        config = self._config
        while taken := self.queue.take(config.batch_tokens, config.batch_lines, config.gather_milliseconds / 1000):
            current = backend, cache = self._current
            in_flight = InFlight(self.queue, cache)
            try:
                lines = in_flight.add(taken)
                # a single line is done soonest if all cores work on it together
                batch = backend.continuous() if len(lines) > 1 else None
                if batch is not None:
                    with closing(batch):
                        self._translate_continuously(batch, lines, in_flight, current)
                self._translate_batch(backend, in_flight)
            except Exception as error:  # a bug costs this batch, but not the thread that everybody depends on
                in_flight.fail(error)

    def _translate_continuously(
        self,
        batch: ContinuousTranslation,
        lines: Sequence[TextRequest],
        in_flight: "InFlight",
        current: tuple[Backend, Cache],
    ) -> None:
        """Translate until no lines are left. Lines that the batch refuses or fails on stay in flight."""
        config, reporter = self._config, BatchReporter(self._listener)
        backlog = config.batch_lines // 2  # lines queued within the batch, so that it never runs dry between polls
        refused = []
        try:
            while lines or batch.in_progress:
                refused += batch.submit(lines) if lines else []
                reporter.started(in_flight.tokens)
                for line, hypotheses in batch.completed(_POLL_SECONDS):
                    reporter.finished(in_flight.finish(line, hypotheses), config.batch_lines)
                lines = ()
                if batch.queued > backlog // 2:
                    time.sleep(_POLL_SECONDS)  # admitting several lines at once is cheaper than one at a time
                elif not refused and current is self._current:
                    budget = config.batch_tokens - in_flight.tokens, backlog - batch.queued
                    taken = self.queue.take_waiting(*budget)
                    lines = in_flight.add(taken) if taken else ()
        except DragomanError:  # too little memory, or one line's error: each line is tried again
            pass
        reporter.report()

    def _translate_batch(self, backend: Backend, in_flight: "InFlight") -> None:
        """Translate all lines in flight."""
        reporter, lines = BatchReporter(self._listener), in_flight.lines
        reporter.started(in_flight.tokens)
        for line, result in _translate_each(backend, lines):
            reporter.finished(in_flight.finish(line, result), len(lines))
        reporter.report()


class InFlight:
    """The lines that were taken from a queue and are not yet answered. Identical lines count once.

    Tokens are released before a ticket is answered, so that a client's next request finds them free.
    """

    def __init__(self, queue: LineQueue, cache: Cache) -> None:
        """cache: receives the results."""
        self._queue, self._cache = queue, cache
        self._unreleased: set[QueuedLine] = set()
        self._requested: dict[TextRequest, list[QueuedLine]] = {}
        self.tokens = 0
        """Source tokens of the lines."""

    @property
    def lines(self) -> list[TextRequest]:
        """The lines in the order in which they were added."""
        return list(self._requested)

    def add(self, taken: Sequence[QueuedLine]) -> list[TextRequest]:
        """Add lines; return those to translate, which are neither withdrawn nor cached nor in flight already."""
        self._unreleased.update(taken)
        new = []
        for each in taken:
            if each.ticket.is_done:
                self._release(each)
                continue
            line = each.line
            if line not in self._requested:
                if (cached := self._cache.get(line)) is not None:
                    self._release(each)
                    each.ticket.set_result(each.position, cached)
                    continue
                self._requested[line] = []
                self.tokens += each.cost
                new.append(line)
            self._requested[line].append(each)
        return new

    def finish(self, line: TextRequest, result: Hypotheses | BaseException) -> int:
        """Deliver the hypotheses or the error of a line to every ticket with it; returns its source tokens."""
        requested = self._requested.pop(line)
        tokens = requested[0].cost
        self.tokens -= tokens
        if not isinstance(result, BaseException):
            self._cache.put(line, result)
        for each in requested:
            self._release(each)
            if isinstance(result, BaseException):
                each.ticket.fail(result)
            else:
                each.ticket.set_result(each.position, result)
        return tokens

    def fail(self, error: BaseException) -> None:
        """Fail all lines that are left."""
        for each in tuple(self._unreleased):
            self._release(each)
            each.ticket.fail(error)

    def _release(self, line: QueuedLine) -> None:
        self._unreleased.remove(line)
        self._queue.release(line)


class BatchReporter:
    """Reports to a listener, once per batch's worth of lines."""

    def __init__(self, listener: BatchListener) -> None:
        self._listener, self._since = listener, perf_counter()
        self._lines = self._tokens = self._concurrent_tokens = 0

    def started(self, tokens: int) -> None:
        """Record the tokens that are in flight."""
        self._concurrent_tokens = max(self._concurrent_tokens, tokens)

    def finished(self, tokens: int, batch_lines: int) -> None:
        """Record a translated line. batch_lines: the number of lines to report together."""
        self._lines, self._tokens = self._lines + 1, self._tokens + tokens
        if self._lines >= batch_lines:
            self.report()

    def report(self) -> None:
        """Report the lines since the last report, if there are any."""
        if self._lines:
            now = perf_counter()
            statistics = BatchStatistics(self._lines, self._tokens, now - self._since, self._concurrent_tokens)
            self._listener(statistics)
            self._since, self._lines, self._tokens, self._concurrent_tokens = now, 0, 0, 0


def _translate_each(
    backend: Backend, lines: Sequence[TextRequest]
) -> Iterator[tuple[TextRequest, Hypotheses | BaseException]]:
    """Yield the hypotheses of each line, or its error: lines of a batch that fails are translated one by one."""
    done = 0
    try:
        for hypotheses in backend.translate(lines) if lines else ():
            yield lines[done], hypotheses
            done += 1
    except Exception as error:
        if len(lines) == 1:
            yield lines[0], error
            return
    for line in lines[done:]:
        yield from _translate_each(backend, [line])
