"""`Connection`: an HTTP connection with limits that uvicorn lacks, so that no client can occupy the server."""

import json
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dragoman.addons.serving.http.exchange import SECURITY_HEADERS
from dragoman.addons.serving.http.idle_connections import IdleConnections

_HEADER_BYTES = 32_768
_HEADER_SECONDS = 10.0

_OVERHEAD_BYTES, _OVERHEAD_FACTOR = 65_536, 8
"""Maximum number of bytes of a body that are no content, such as chunk extensions and trailers: a constant, and a
multiple of the content, because each chunk of a single byte takes five more bytes."""

_LINGER_SECONDS, _LINGER_BYTES = 2.0, 16_000_000
"""Time for a client to receive an answer that was sent before its whole request arrived, and the maximum number of
bytes of the request that are still received, so that an endless one takes no time of the server."""

_WAITING_REQUESTS, _WAITING_BYTES = 32, 65_536
"""Maximum number of requests that a client may send before it receives the answer to an earlier one (HTTP pipelining),
and the maximum size of their bodies together."""

_STALL_SECONDS = 30.0
"""Time after which a connection is closed if the client receives nothing of an answer."""

_TOO_LONG = "the headers, the trailers or the chunk extensions are too long"

_overloaded = JSONResponse({"error": "too many connections: try again later"}, 503, {"Retry-After": "1"})


class Connection(HttpToolsProtocol):
    """An HTTP connection of uvicorn with limits on headers, on the encoding of bodies, on unread answers, and on idle
    connections.

    Headers are limited in size and time. In the body, chunk extensions and trailers are limited in size, and trailers
    are ignored. If an answer is sent before the request is complete, or if the client does not receive an answer, the
    connection is closed soon. If the client disconnects, all of its requests end, including those sent in advance.
    """

    _timer: TimerHandle | None = None
    """The timeout for headers, while headers are expected."""
    _linger: TimerHandle | None = None
    _stall: TimerHandle | None = None
    _header_bytes = 0
    _in_body = False
    _received_bytes = _content_bytes = _linger_bytes = 0
    """The bytes of the current body as received, those of its content, and those received after the answer."""
    _answering: RequestResponseCycle | None = None
    """The request that is being answered. Later requests of the client wait in `pipeline`."""

    def __init__(
        self,
        *arguments: Any,
        idle: IdleConnections | None = None,
        overloaded: ASGIApp = _overloaded,
        on_rejection: Callable[[int], None] = lambda status: None,
        **settings: Any,
    ) -> None:
        """idle: the idle connections of the server; None: no limit. arguments, settings: as uvicorn passes them.

        overloaded: answers requests if there are too many connections. on_rejection: called with the status of each
        answer to input that is no valid request.
        """
        super().__init__(*arguments, **settings)
        self._idle, self._overloaded, self._on_rejection = idle, overloaded, on_rejection

    def close_idle(self) -> None:
        """Close the connection, which has no complete request."""
        self.transport.close()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the timeout for the headers of the first request."""
        super().connection_made(transport)
        # uvicorn would reject connections that exceed the limit in plain text
        self._most_connections, self.limit_concurrency = self.limit_concurrency, None
        self._start_timer()
        self._become_idle()

    def _become_idle(self) -> None:
        if self._idle is not None:
            self._idle.add(self, self.client[0] if self.client else None)

    def _become_active(self) -> None:
        if self._idle is not None:
            self._idle.discard(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timeouts, and end the client's requests. uvicorn ends only the latest one."""
        self._become_active()
        self._stop_timer()
        for timer in (self._linger, self._stall):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Check the length of the headers and the encoding of the body, and process the data."""
        if self._timer is not None:
            self._header_bytes += len(data)
            if self._header_bytes > _HEADER_BYTES and b"\r\n\r\n" not in data:
                self._reject(431, _TOO_LONG)
                return
        if self._in_body:
            self._received_bytes += len(data)
            if self._linger is not None:
                self._linger_bytes += len(data)
                if self._linger_bytes > _LINGER_BYTES:
                    self.flow.pause_reading()
                    return
        super().data_received(data)
        if self._in_body:
            overhead = self._received_bytes - self._content_bytes
            if overhead > _OVERHEAD_BYTES + _OVERHEAD_FACTOR * self._content_bytes:
                self._reject(431, _TOO_LONG)
        if self.pipeline:
            self._admit_waiting()

    def on_message_begin(self) -> None:
        """Start the timeout for the headers of a further request on this connection."""
        if self._timer is None:
            self._start_timer()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers are ignored, because they must not change what the headers say."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> Any:
        """Stop the timeout. The routes limit the time for the body."""
        self._stop_timer()
        self._become_active()
        self._become_idle()  # as the latest one, until the body is complete
        self._in_body, self._received_bytes, self._content_bytes = True, 0, 0
        if self._most_connections is not None and len(self.connections) > self._most_connections:
            self.app = self._overloaded
        return super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Process a part of the content."""
        self._content_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Process the end of a request."""
        self._in_body = False
        if self.cycle is not None and not self.cycle.response_complete:
            self._become_active()
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Process the end of an answer. The rest of an incomplete request is not awaited."""
        super().on_response_complete()
        if (self._in_body or self.app is self._overloaded) and not self.transport.is_closing():
            self._linger_bytes = 0
            self._linger = self.loop.call_later(_LINGER_SECONDS, self.transport.close)
            self._become_idle()
        elif (self._answering is None or self._answering.response_complete) and not self.transport.is_closing():
            self._become_idle()

    def pause_writing(self) -> None:
        """Start to watch whether the client receives the answer."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop watching."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not valid HTTP, and close the connection."""
        self._reject(400, msg)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _admit_waiting(self) -> None:
        """Continue to receive data, so that a disconnect is noticed, or close the connection.

        Answers must be in the order of the requests, so requests in excess cannot be answered with an error. Clients
        send requests again that were not answered (RFC 9112, section 9.3.2).
        """
        content = sum(len(cycle.body) for cycle, _ in self.pipeline)
        if len(self.pipeline) > _WAITING_REQUESTS or content > _WAITING_BYTES:
            self.transport.abort()
        else:
            self.flow.resume_reading()

    def _watch(self, unsent: int) -> None:
        """Abort the connection if as many bytes are unsent after some time."""

        def check() -> None:
            remaining = self.transport.get_write_buffer_size()
            if remaining >= unsent:
                self.transport.abort()
            else:
                self._watch(remaining)

        self._stall = self.loop.call_later(_STALL_SECONDS, check)

    def _reject(self, status: int, message: str) -> None:
        """Answer with an error in JSON, unless an answer has begun, and close the connection."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            reason = b"Bad Request" if status == 400 else b"Request Header Fields Too Large"
            content = json.dumps({"error": message}).encode()
            headers = (
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(content)),
                (b"connection", b"close"),
                *SECURITY_HEADERS,
            )
            lines = b"".join(b"%b: %b\r\n" % header for header in headers)
            self.transport.write(b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, reason, lines, content))
            self._on_rejection(status)
        self.transport.close()

    def _start_timer(self) -> None:
        self._header_bytes = 0
        self._timer = self.loop.call_later(_HEADER_SECONDS, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
