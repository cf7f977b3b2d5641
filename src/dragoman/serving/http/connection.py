"""`Connection`: an HTTP connection that is closed if its headers are too long or arrive too slowly."""

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
    """An HTTP connection of uvicorn, with limits on the size and the duration of headers, which uvicorn lacks."""

    _timer: TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the timeout for the headers of the first request."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Check the length of the headers, and process the data."""
        if self._timer is not None:
            self._header_bytes += len(data)
            if self._header_bytes > _HEADER_BYTES and b"\r\n\r\n" not in data:
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Start the timeout for the headers of a further request on this connection."""
        if self._timer is None:
            self._start_timer()
        super().on_message_begin()

    def on_headers_complete(self) -> Any:
        """Stop the timeout. The routes limit the time for the body."""
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
