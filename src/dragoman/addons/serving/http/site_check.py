"""`SiteCheck`: rejects requests that a web page of another site makes a visitor's browser send."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse

from dragoman.addons.serving.address import is_loopback
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.http.public_url import PublicUrl

ANY_ORIGIN = "*"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MISDIRECTED = 421
"""Misdirected Request (RFC 9110, section 15.5.20)."""


class SiteCheck:
    """Checks the host and the origin of requests.

    Host: a page of another site can let its own name resolve to 127.0.0.1 after it was loaded (DNS rebinding). Browsers
    then treat the server on the visitor's machine as a part of that site, so that the page can read all answers. A
    server that only listens on a loopback address therefore accepts only addresses, localhost, the host of `public_url`
    and `hosts`. A server behind a trusted proxy is public, and accepts all names.

    Origin: the same-origin policy prevents other pages from reading answers, but not from sending forms. Browsers name
    the origin of a request in Origin, and its relation to the server in Sec-Fetch-Site; a page can forge neither. A
    request without these headers does not come from a page.
    """

    def __init__(self, config: ServeConfig) -> None:
        self._checks_host = is_loopback(config.host) and not config.access.trusted_proxies
        public = None if config.public_url is None else urlsplit(config.public_url).hostname
        self._names = {name.lower().rstrip(".") for name in (*config.hosts, config.host, public or "localhost")}
        self._public_url = PublicUrl(config)
        self._allowed = frozenset(each.lower().rstrip("/") for each in config.access.allowed_origins)

    def refusal(self, request: Request) -> JSONResponse | None:
        """Return the answer to a request that is rejected, or None."""
        if self._checks_host and not self._accepts_host(request):
            request.state.refused = "host"
            message = (
                "the host of this address is not a name of this server: add it to `hosts`, or set `public_url`, in the "
                "settings of the server"
            )
            return JSONResponse({"error": message}, _MISDIRECTED)
        if request.method not in _SAFE_METHODS and not self._accepts_origin(request):
            request.state.refused = "origin"
            message = "requests from pages of other origins are rejected: see access.allowed_origins of the server"
            return JSONResponse({"error": message}, 403)
        return None

    def _accepts_host(self, request: Request) -> bool:
        """Return whether all Host headers contain an address or a name of the server. Browsers always send one."""
        return all(self._is_own_host(host) for host in request.headers.getlist("host"))

    def _is_own_host(self, host: str) -> bool:
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

    def _accepts_origin(self, request: Request) -> bool:
        """Return whether a request comes from the server's own page, from an allowed origin, or from no page."""
        origins = request.headers.getlist("origin")
        if ANY_ORIGIN in self._allowed or (origins and all(each.lower() in self._allowed for each in origins)):
            return True
        site = request.headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            return site == "none" and not origins
        # behind a proxy that is not trusted, the server cannot compare its origin, but the browser has done so
        return site == "same-origin" or all(self._is_own_origin(each, request) for each in origins)

    def _is_own_origin(self, origin: str, request: Request) -> bool:
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
