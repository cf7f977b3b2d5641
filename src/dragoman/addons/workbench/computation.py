"""`Computations`: computes one after another in a thread, and cancels those that are no longer wanted."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request

from dragoman.base.cancellation import Cancellation, Cancelled

Result = TypeVar("Result")


class Disconnected(Exception):
    """The client has closed its connection before its response was ready."""


class Computations:
    """Computations use all threads of PyTorch, so that two at a time would be no faster."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="workbench")

    async def run(self, request: Request, function: Callable[[], Result]) -> Result:
        """Return the result of a function. If the client disconnects first, it is not started, or is cancelled.

        Raises Disconnected, and the errors of the function.
        """
        cancellation = Cancellation()

        def work() -> Result:
            if cancellation.is_cancelled:
                raise Disconnected
            with cancellation.active():
                try:
                    return function()
                except Cancelled:
                    raise Disconnected from None

        loop = asyncio.get_running_loop()
        result = loop.run_in_executor(self._thread, contextvars.copy_context().run, work)
        disconnection = asyncio.create_task(_wait_for_disconnection(request))
        waited: set[asyncio.Future[Any]] = {result, disconnection}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not result.done():
                cancellation.cancel()
            return await result
        except asyncio.CancelledError:  # the server ends
            cancellation.cancel()
            raise
        finally:
            disconnection.cancel()

    def close(self) -> None:
        """End the thread after the current computation."""
        self._thread.shutdown(wait=False, cancel_futures=True)


async def _wait_for_disconnection(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
