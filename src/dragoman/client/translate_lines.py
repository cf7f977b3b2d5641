"""`translate_lines`: a file, or a stream, through a server."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from dragoman.client.client import Client


def translate_lines(
    lines: Iterable[str],
    client: Client,
    target: str,
    source: str = "auto",
    at_once: int = 32,
    parallel: int = 4,
    **settings: Any,
) -> Iterator[str]:
    """A translation a line, in order; a blank line stays blank. Lines are read as there is room for them.

    at_once: lines of a request; parallel: requests that are under way; settings: as `Client.translate` takes them.
    Raises ServerError once all lines before were given.
    """

    def translated(some: list[str]) -> list[str]:
        return client.translate(some, target, source, **settings)

    lines = iter(lines)
    waiting: deque[Future[list[str]]] = deque()
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while True:
                while len(waiting) < parallel and (some := list(islice(lines, at_once))):
                    waiting.append(pool.submit(translated, some))
                if not waiting:
                    return
                for text in waiting.popleft().result():
                    yield " ".join(text.split("\n"))
        finally:
            for each in waiting:
                each.cancel()
