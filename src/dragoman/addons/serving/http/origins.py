"""`OriginCheck`: rejects requests that a web page of another site makes a visitor's browser send."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.addons.serving.http.public_url import PublicUrl

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_DEFAULT_PORTS = {"http": 80, "https": 443}
ANY_ORIGIN = "*"


class OriginCheck:
    """Middleware that rejects POST requests from pages of other origins with status 403.

    The same-origin policy prevents other pages from reading answers, but not from sending forms. Browsers name the
    origin of a request in Origin, and its relation to the server in Sec-Fetch-Site; a page can forge neither. A request
    without these headers does not come from a page.
    """

    def __init__(self, app: ASGIApp, public_url: PublicUrl, allowed: Sequence[str]) -> None:
        """allowed: the other origins that are accepted, or `*` for all."""
        self._app, self._public_url = app, public_url
        self._allowed = frozenset(each.lower().rstrip("/") for each in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, or reject the request."""
        if scope["type"] != "http" or scope["method"] in _SAFE_METHODS or self.accepts(request := Request(scope)):
            await self._app(scope, receive, send)
            return
        request.state.refused = "origin"
        message = "requests from pages of other origins are rejected: see access.allowed_origins of the server"
        await JSONResponse({"error": message}, 403)(scope, receive, send)

    def accepts(self, request: Request) -> bool:
        """Return whether a request comes from the server's own page, from an allowed origin, or from no page."""
        origins = request.headers.getlist("origin")
        if ANY_ORIGIN in self._allowed or (origins and all(each.lower() in self._allowed for each in origins)):
            return True
        site = request.headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            return site == "none" and not origins
        # behind a proxy that is not trusted, the server cannot compare its origin, but the browser has done so
        return site == "same-origin" or all(self._is_own(each, request) for each in origins)

    def _is_own(self, origin: str, request: Request) -> bool:
        return _authority(origin) in (_authority(self._public_url.origin(request)), _authority(str(request.base_url)))


def _authority(url: str) -> tuple[str, int | None] | None:
    """Return the host and port of an origin, or None for an origin without a host, such as `null`.

    A default port is None, for either scheme: the scheme is unknown behind a proxy that terminates TLS.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return parts.hostname.lower(), None if port in (None, *_DEFAULT_PORTS.values()) else port
