"""`Connection`: a client's, closed where its headers are too long or do not come."""

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
    """The library's limits end with the headers' beginning: it waits for them, and keeps them, without end."""

    _timer: TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Headers must follow soon."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._expected()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Part of a request."""
        if self._timer is not None:
            self._header_bytes += len(data)
            if self._header_bytes > _HEADER_BYTES and b"\r\n\r\n" not in data:
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A further request on the same connection."""
        if self._timer is None:
            self._expect()
        super().on_message_begin()

    def on_headers_complete(self) -> Any:
        """What follows is the body, whose limits are the routes'."""
        self._expected()
        return super().on_headers_complete()

    def _expect(self) -> None:
        self._header_bytes = 0
        self._timer = self.loop.call_later(_HEADER_SECONDS, self._too_slow)

    def _expected(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
