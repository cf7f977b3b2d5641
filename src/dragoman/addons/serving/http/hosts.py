"""`HostCheck`: rejects requests for names that are not the server's, against DNS rebinding."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.addons.serving.address import is_loopback
from dragoman.addons.serving.config import ServeConfig

_MISDIRECTED = 421
"""Misdirected Request (RFC 9110, section 15.5.20)."""


class HostCheck:
    """Middleware that rejects requests whose Host is not a name of the server with status 421.

    A page of another site can let its own name resolve to 127.0.0.1 after it was loaded. Browsers then treat the
    server on the visitor's machine as a part of that site, so that the page can read all answers. A server that only
    listens on a loopback address therefore accepts only addresses, localhost, the host of `public_url` and `hosts`. A
    server behind a trusted proxy is public, and accepts all names.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self._app = app
        self._is_active = is_loopback(config.host) and not config.access.trusted_proxies
        public = None if config.public_url is None else urlsplit(config.public_url).hostname
        self._names = {name.lower().rstrip(".") for name in (*config.hosts, config.host, public or "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, or reject the request."""
        if scope["type"] != "http" or not self._is_active or self.accepts(request := Request(scope)):
            await self._app(scope, receive, send)
            return
        request.state.refused = "host"
        message = (
            "the host of this address is not a name of this server: add it to `hosts`, or set `public_url`, in the "
            "settings of the server"
        )
        await JSONResponse({"error": message}, _MISDIRECTED)(scope, receive, send)

    def accepts(self, request: Request) -> bool:
        """Return whether all Host headers contain an address or a name of the server. Browsers always send one."""
        return all(self._is_own(host) for host in request.headers.getlist("host"))

    def _is_own(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, _ = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            return False
        if parts.netloc != host or "@" in host:
            return False
        if name == "localhost" or name.endswith(".localhost") or name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True
