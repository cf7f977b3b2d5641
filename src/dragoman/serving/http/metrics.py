"""`Metrics`: what a server counts, in the terms of Prometheus; `Observed` counts and logs every request."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.batcher import Batcher, BatchStatistics

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)


class Metrics:
    """Of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        of_model = ("model",)
        self._requests = Counter(
            "dragoman_requests", "Requests that were answered.", ("route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "dragoman_request_seconds",
            "Seconds from a request's headers to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._lines = Counter("dragoman_sentences", "Sentences translated.", of_model, registry=self.registry)
        self._tokens = Counter("dragoman_source_tokens", "Source tokens translated.", of_model, registry=self.registry)
        self._computing = Counter(
            "dragoman_computing_seconds", "Seconds in which a batch was computed.", of_model, registry=self.registry
        )
        self._fill = Histogram(
            "dragoman_batch_fill",
            "Source tokens that were translated together as a share of the most that may be.",
            of_model,
            buckets=_SHARES,
            registry=self.registry,
        )
        self._waiting = Gauge(
            "dragoman_queue_tokens", "Source tokens taken in and not translated.", of_model, registry=self.registry
        )
        self._known = Gauge(
            "dragoman_cache_hits", "Sentences that were known from before.", of_model, registry=self.registry
        )

    def answered(self, route: str, status: int, seconds: float) -> None:
        """route: as it is declared, without what it stands for."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def translated(self, model: str, batch: BatchStatistics, most_tokens: int) -> None:
        """most_tokens: that may be translated together."""
        self._lines.labels(model).inc(batch.lines)
        self._tokens.labels(model).inc(batch.tokens)
        self._computing.labels(model).inc(batch.seconds)
        self._fill.labels(model).observe(min(1.0, batch.concurrent_tokens / most_tokens))

    def watch(self, model: str, batcher: Batcher) -> None:
        """Its queue and cache are read when metrics are."""
        self._waiting.labels(model).set_function(lambda: batcher.queue.tokens)
        self._known.labels(model).set_function(lambda: batcher.cache.hits)

    def text(self) -> bytes:
        """In the text format of Prometheus."""
        return generate_latest(self.registry)


_SECURITY_HEADERS = {
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
                for name, value in _SECURITY_HEADERS.items():
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
