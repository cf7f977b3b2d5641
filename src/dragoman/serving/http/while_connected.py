"""`while_connected`: work for a client that may go away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from dragoman.serving.errors import Refusal

T = TypeVar("T")


class Gone(Refusal):
    """Nobody waits for the answer any more."""

    status = 499


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; cancelled as soon as its client has gone, whose request was read to its end."""
    doing, watching = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise Gone("the client has gone")
    finally:
        doing.cancel()
        watching.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
