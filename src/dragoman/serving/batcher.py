"""`Batcher`: threads that translate what waits, in batches of many clients' lines."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from threading import Thread
from time import perf_counter
from typing import NamedTuple, Protocol

from dragoman.base.errors import DragomanError
from dragoman.serving.config import QueueConfig
from dragoman.serving.queue import Cache, Found, Taken, Ticket, WaitingLines
from dragoman.translation.continuous import ContinuousTranslation
from dragoman.translation.request import TextRequest

Translate = Callable[[Sequence[TextRequest]], Iterator[Found]]
"""The hypotheses of each line, in order. What is wrong with one line may raise, and costs the batch a second try."""


def _never() -> None:
    """No batch takes in lines while it is computed."""


class Model(NamedTuple):
    """continuous: opens a batch that takes in lines while it is computed; gives None where there is no such thing."""

    translate: Translate
    continuous: Callable[[], ContinuousTranslation | None] = _never


class UnderWay:
    """Each line once, whoever asked for it.

    The room that a line takes in the queue is free before anybody hears of it: an answer makes way at once.
    """

    def __init__(self, waiting: WaitingLines, cache: Cache) -> None:
        """cache: that is told what is found."""
        self._waiting, self._cache = waiting, cache
        self._held: set[Taken] = set()
        self._places: dict[TextRequest, list[Taken]] = {}
        self.tokens = 0
        """Of the lines' sources."""

    @property
    def lines(self) -> list[TextRequest]:
        """In the order in which they came."""
        return list(self._places)

    def add(self, taken: Sequence[Taken]) -> list[TextRequest]:
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

    def done(self, line: TextRequest, found: Found | BaseException) -> int:
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


_LOOK_SECONDS = 0.005
"""How often it is looked what is done and what has come, at least."""


class Batch(NamedTuple):
    """What was translated: lines, their source tokens, seconds; and tokens that were under way together, at most."""

    lines: int
    tokens: int
    seconds: float
    together: int


class Watch(Protocol):
    """Is told of each batch, and of one without an end again and again."""

    def __call__(self, batch: Batch) -> None: ...


class Batcher:
    """One queue, and threads that take batches from it: as soon as one is done, the next is made of what waits then.

    Where the model can, a batch takes in what comes as long as lines are under way. Lines that are asked for twice are
    translated once. What is wrong with a line fails its own ticket alone.
    """

    def __init__(self, model: Model, config: QueueConfig, watch: Watch = lambda batch: None, threads: int = 1) -> None:
        """threads: batches that are translated side by side."""
        self.waiting = WaitingLines(config.most_tokens)
        self._config, self._watch = config, watch
        self._current = model, Cache(config.cache_entries)
        self._threads = [Thread(target=self._work, name="translating", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    @property
    def model(self) -> Model:
        """Of the next batch."""
        return self._current[0]

    @property
    def cache(self) -> Cache:
        """Of what that model has translated."""
        return self._current[1]

    def submit(self, ticket: Ticket) -> None:
        """Raises Overloaded. What the cache knows is given at once."""
        cache = self.cache
        found = [cache.find(line) for line in ticket.lines]
        if missing := [place for place, each in enumerate(found) if each is None]:
            self.waiting.put(ticket, missing)
        for place, each in enumerate(found):
            if each is not None:
                ticket.give(place, each)

    def replace(self, model: Model) -> None:
        """Another model from the next batch on; what has begun ends as it began."""
        self._current = model, Cache(self._config.cache_entries)

    def close(self) -> None:
        """Ends once all that waits is done."""
        self.waiting.close()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        config = self._config
        while taken := self.waiting.take(config.batch_tokens, config.batch_lines, config.gather_milliseconds / 1000):
            current = model, cache = self._current
            under_way = UnderWay(self.waiting, cache)
            try:
                lines = under_way.add(taken)
                # a line alone is done soonest where all cores work on it together
                batch = model.continuous() if len(lines) > 1 else None
                if batch is not None:
                    with closing(batch):
                        self._go_on(batch, lines, under_way, current)
                self._compute(model.translate, under_way)
            except Exception as error:  # a fault of ours costs this batch, not the thread that all wait for
                under_way.fail(error)

    def _go_on(
        self,
        batch: ContinuousTranslation,
        lines: Sequence[TextRequest],
        under_way: UnderWay,
        current: tuple[Model, Cache],
    ) -> None:
        """As long as there are lines. Those that the batch does not take, or fails at, stay under way."""
        config, told = self._config, _Told(self._watch)
        stock = config.batch_lines // 2  # waits within the batch, so that it never wants lines while this thread rests
        refused = []
        try:
            while lines or batch.in_progress:
                refused += batch.submit(lines) if lines else []
                told.most(under_way.tokens)
                for line, found in batch.completed(_LOOK_SECONDS):
                    told.more(under_way.done(line, found), config.batch_lines)
                lines = ()
                if batch.queued > stock // 2:
                    time.sleep(_LOOK_SECONDS)  # many at once are less work than one by one
                elif not refused and current is self._current:
                    room = config.batch_tokens - under_way.tokens, stock - batch.queued
                    taken = self.waiting.take_at_once(*room)
                    lines = under_way.add(taken) if taken else ()
        except DragomanError:  # too little memory, or one line's fault: each is tried anew
            pass
        told.end()

    def _compute(self, translate: Translate, under_way: UnderWay) -> None:
        told, lines = _Told(self._watch), under_way.lines
        told.most(under_way.tokens)
        for line, found in _each(translate, lines):
            told.more(under_way.done(line, found), len(lines))
        told.end()


class _Told:
    """What a watch is told of, a batch's worth of lines at a time."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._began = watch, perf_counter()
        self._lines = self._tokens = self._together = 0

    def most(self, tokens: int) -> None:
        """That are under way."""
        self._together = max(self._together, tokens)

    def more(self, tokens: int, lines: int) -> None:
        """Of a line. lines: how many it is told of at once."""
        self._lines, self._tokens = self._lines + 1, self._tokens + tokens
        if self._lines >= lines:
            self.end()

    def end(self) -> None:
        if self._lines:
            now = perf_counter()
            self._watch(Batch(self._lines, self._tokens, now - self._began, self._together))
            self._began, self._lines, self._tokens, self._together = now, 0, 0, 0


def _each(translate: Translate, lines: Sequence[TextRequest]) -> Iterator[tuple[TextRequest, Found | BaseException]]:
    """The hypotheses of each line, or what is wrong with it."""
    done = 0
    try:
        for found in translate(lines) if lines else ():
            yield lines[done], found
            done += 1
    except Exception as error:
        if len(lines) == 1:
            yield lines[0], error
            return
    for line in lines[done:]:
        yield from _each(translate, [line])
