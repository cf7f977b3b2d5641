"""`ShutdownResponder`: answers requests that the end of the server interrupts."""

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.addons.serving.errors import Overloaded
from dragoman.addons.serving.service.service import Service


class ShutdownResponder:
    """Middleware that answers a request with status 503 if uvicorn cancels it during shutdown.

    Without it, uvicorn would answer with status 500 in plain text, and log a traceback.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application."""
        has_started = False

        async def observed_send(message: Message) -> None:
            nonlocal has_started
            has_started = has_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, observed_send)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if has_started or not self._service.is_shutting_down or scope["type"] != "http" or task is None:
                raise
            task.uncancel()
            scope.setdefault("state", {})["failure"] = Overloaded.reason
            content = {"error": "the server is shutting down: send the request again"}
            await JSONResponse(content, Overloaded.status, {"Retry-After": "5"})(scope, receive, send)
