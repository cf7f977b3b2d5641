"""`decode`: decodes the lines of a request through a model's queue, a document in parts."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from dragoman.addons.serving.errors import QueueFull
from dragoman.addons.serving.queueing.batcher import Batcher
from dragoman.addons.serving.queueing.line_queue import Hypotheses, Ticket
from dragoman.inference.translation.request import TextRequest

_PART_LINES, _PART_TOKENS, _PARTS = 64, 2048, 3
"""Maximum numbers of lines and tokens of a part of a document, and of parts in the queue at the same time."""

_RETRY_SECONDS = 0.1
"""Time to wait before a further part of a document is submitted again to a full queue."""


async def decode(
    batcher: Batcher,
    lines: Sequence[TextRequest],
    costs: Sequence[int],
    on_result: Callable[[int, Hypotheses], None],
    client: str | None,
    in_parts: bool,
) -> list[Hypotheses]:
    """Return the hypotheses of each line. Cancelling this coroutine withdraws the lines from the queue.

    costs: the number of tokens of each line. on_result, client: as in `Ticket`. in_parts: whether only a few parts of
    the lines are in the queue at the same time, so that a document of any size leaves space for other requests.

    Raises QueueFull, and the errors of the translation. A document waits for space if a part of it is translated.
    """
    if not in_parts:
        return await _submit(batcher, Ticket(lines, costs, on_result, client))
    pending: deque[asyncio.Task[list[Hypotheses]]] = deque()
    results: list[Hypotheses] = []
    try:
        for begin, end in _parts(costs):

            async def submit(begin: int = begin, end: int = end) -> list[Hypotheses]:
                def on_line(line: int, hypotheses: Hypotheses) -> None:
                    on_result(begin + line, hypotheses)

                while True:
                    try:
                        return await _submit(batcher, Ticket(lines[begin:end], costs[begin:end], on_line, client))
                    except QueueFull:
                        if not begin:
                            raise
                        await asyncio.sleep(_RETRY_SECONDS)

            pending.append(asyncio.create_task(submit()))
            if len(pending) == _PARTS:
                results += await pending.popleft()
        while pending:
            results += await pending.popleft()
    finally:
        for task in pending:
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            task.cancel()
    return results


async def _submit(batcher: Batcher, ticket: Ticket) -> list[Hypotheses]:
    batcher.submit(ticket)
    try:
        results = await asyncio.wrap_future(ticket.done)
        found = list(results)
        results.clear()  # the callbacks of futures keep them, and this list, until the next garbage collection
        return found
    finally:
        ticket.done.cancel()


def _parts(costs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the (begin, end) indices of consecutive parts of at least one line."""
    begin, tokens = 0, 0
    for index, cost in enumerate(costs):
        if index > begin and (index - begin == _PART_LINES or tokens + cost > _PART_TOKENS):
            yield begin, index
            begin, tokens = index, 0
        tokens += cost
    if costs:
        yield begin, len(costs)
