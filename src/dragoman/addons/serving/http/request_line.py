"""`RequestLine`: accepts paths and methods in the forms that clients of other servers use."""

import re
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SLASHES = re.compile("/{2,}")


class RequestLine:
    """Middleware that ignores repeated slashes and slashes at the end of a path, and answers HEAD and OPTIONS.

    Clients join a base URL with or without a slash at the end, and monitors send HEAD. HEAD is answered like GET,
    without a body. OPTIONS is answered with the methods of the route.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with the normalised request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = _SLASHES.sub("/", scope["path"])
        scope["path"] = path.rstrip("/") or "/"
        if scope["method"] == "OPTIONS":
            await self._options(scope, receive, send)
        elif scope["method"] == "HEAD":
            await self._head(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _options(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Turn the error 405, whose header Allow contains the methods of the route, into a response without a body."""
        found = False

        async def send_methods(message: Message) -> None:
            nonlocal found
            if message["type"] == "http.response.start" and message["status"] == 405:
                found = True
                methods = set(Headers(raw=message["headers"]).get("allow", "").replace(" ", "").split(","))
                methods |= {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
                allow = ", ".join(sorted(filter(None, methods)))
                message = {**message, "status": 204, "headers": [(b"allow", allow.encode())]}
            elif found:
                message = {**message, "body": b""}
            await send(message)

        await self._app(scope, receive, send_methods)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        # the server checks the length of the body unless its own scope says HEAD, so the scope is copied
        get: dict[str, Any] = {**scope, "method": "GET"}
        scope.setdefault("state", {})
        get["state"] = scope["state"]
        try:
            await self._app(get, receive, send_without_body)
        finally:
            if "route" in get:
                scope["route"] = get["route"]
