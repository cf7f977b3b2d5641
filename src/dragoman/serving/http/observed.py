"""`Observed`: every request counted and logged, every answer with the headers that browsers should have."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.observation.metrics import Metrics

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}

Log = Callable[[dict[str, Any]], None]


def log_line(entry: dict[str, Any]) -> None:
    """A line of JSON on stderr. One that cannot be written, as on a full disk, is lost."""
    with suppress(OSError):
        print(json.dumps(entry, ensure_ascii=False), file=sys.stderr, flush=True)


class Observed:
    """Around an application. What is logged of a request: time, method, route, status, seconds, the id
    of its key or why that was refused; never a text or a key."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: Log | None) -> None:
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            seconds = perf_counter() - began
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.answered(route, status, seconds)
            state = scope.get("state", {})
            if self._log is not None:
                self._log(
                    {
                        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                        "method": scope["method"],
                        "route": route,
                        "status": status,
                        "seconds": round(seconds, 4),
                        **{name: state[name] for name in ("key", "refused") if state.get(name) is not None},
                    }
                )
