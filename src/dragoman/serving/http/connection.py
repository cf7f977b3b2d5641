"""`Connection`: a client's connection, closed if its headers are too long or arrive too slowly."""

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEADER_BYTES = 32_768
_HEADER_SECONDS = 10.0

_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\ncontent-length: 36\r\n"
    b'connection: close\r\n\r\n{"error":"the headers are too long"}'
)


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP connection with limits on headers, which uvicorn awaits and stores without any limit."""

    _timer: TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request's headers."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Check the length of the headers, and process a part of a request."""
        if self._timer is not None:
            self._header_bytes += len(data)
            if self._header_bytes > _HEADER_BYTES and b"\r\n\r\n" not in data:
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Start the time limit for a further request on the same connection."""
        if self._timer is None:
            self._start_timer()
        super().on_message_begin()

    def on_headers_complete(self) -> Any:
        """Stop the time limit: the routes have limits for the body."""
        self._stop_timer()
        return super().on_headers_complete()

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
