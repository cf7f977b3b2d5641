"""`Workers`: runs calls of the C library on several threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from dragoman.base.cancellation import check_cancelled
from dragoman.data.workers import available_cores


class Workers:
    """A pool of threads. The library releases Python's lock, so its calls run in parallel. A context manager.

    The results never depend on the number of threads, because every call has its own range and its own output.
    """

    def __init__(self, threads: int | None = None) -> None:
        """threads: None for one per core."""
        self.threads = threads or available_cores()
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, function: Callable[[int, int], None], ranges: Sequence[tuple[int, int]]) -> None:
        """Call `function(first, last)` for each range. Raises Cancelled between two calls, and the first error."""
        if self._pool is None or len(ranges) == 1:
            for first, last in ranges:
                check_cancelled()
                function(first, last)
            return
        futures = [self._pool.submit(function, first, last) for first, last in ranges]
        try:
            for future in futures:
                check_cancelled()
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
