"""`Batcher`: threads that translate what waits, in batches of many clients' lines."""

from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from time import perf_counter
from typing import NamedTuple, Protocol

from dragoman.serving.config import QueueConfig
from dragoman.serving.queue.cache import Cache
from dragoman.serving.queue.ticket import Found, Ticket
from dragoman.serving.queue.waiting_lines import Taken, WaitingLines
from dragoman.translation.lines import Line

Translate = Callable[[Sequence[Line]], Iterator[Found]]
"""The hypotheses of each line, in order. What is wrong with one line may raise, and costs the batch a second try."""


class Batch(NamedTuple):
    """What was translated at once: lines, their source tokens, seconds."""

    lines: int
    tokens: int
    seconds: float


class Watch(Protocol):
    """Is told of each batch."""

    def __call__(self, batch: Batch) -> None: ...


class Batcher:
    """One queue, and threads that take batches from it: as soon as one is done, the next is made of what waits then.

    Lines that are asked for twice are translated once. What is wrong with a line fails its own ticket alone.
    """

    def __init__(
        self, translate: Translate, config: QueueConfig, watch: Watch = lambda batch: None, threads: int = 1
    ) -> None:
        """threads: batches that are translated side by side."""
        self.translate = translate
        """May be replaced at any time; batches that have begun end as they began."""
        self.cache = Cache(config.cache_entries)
        self.waiting = WaitingLines(config.most_tokens)
        self._config, self._watch = config, watch
        self._threads = [Thread(target=self._work, name="translating", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Raises Overloaded. What the cache knows is given at once."""
        found = [self.cache.find(line) for line in ticket.lines]
        if missing := [place for place, each in enumerate(found) if each is None]:
            self.waiting.put(ticket, missing)
        for place, each in enumerate(found):
            if each is not None:
                ticket.give(place, each)

    def replace(self, translate: Translate) -> None:
        """Another model from the next batch on."""
        self.translate, self.cache = translate, Cache(self._config.cache_entries)

    def close(self) -> None:
        """Ends once all that waits is done."""
        self.waiting.close()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        config = self._config
        while taken := self.waiting.take(config.batch_tokens, config.batch_lines, config.gather_milliseconds / 1000):
            held = set(taken)
            try:
                self._compute(taken, held)
            except Exception as error:  # a fault of ours costs this batch, not the thread that all wait for
                for each in taken:
                    each.ticket.fail(error)
            for each in held:
                self.waiting.free(each)

    def _compute(self, taken: Sequence[Taken], held: set[Taken]) -> None:
        """held: lines whose room is not free yet. It is before anybody hears of them: an answer makes way at once."""
        waiting: dict[Line, list[Taken]] = {}
        for each in taken:
            if not each.ticket.is_over:
                waiting.setdefault(each.ticket.lines[each.place], []).append(each)
        lines, translate, cache = list(waiting), self.translate, self.cache
        began = perf_counter()
        for line, found in self._each(translate, lines):
            if not isinstance(found, BaseException):
                cache.keep(line, found)
            for each in waiting[line]:
                held.remove(each)
                self.waiting.free(each)
                if isinstance(found, BaseException):
                    each.ticket.fail(found)
                else:
                    each.ticket.give(each.place, found)
        if lines:
            tokens = sum(places[0].ticket.costs[places[0].place] for places in waiting.values())
            self._watch(Batch(len(lines), tokens, perf_counter() - began))

    def _each(self, translate: Translate, lines: Sequence[Line]) -> Iterator[tuple[Line, Found | BaseException]]:
        """The hypotheses of each line, or what is wrong with it."""
        done = 0
        try:
            for found in translate(lines):
                yield lines[done], found
                done += 1
        except Exception as error:
            if len(lines) == 1:
                yield lines[0], error
                return
        for line in lines[done:]:
            yield from self._each(translate, [line])
