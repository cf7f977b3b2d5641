"""The URL under which clients reach a server that may be behind proxies."""

import re
from collections.abc import Sequence

from starlette.requests import Request

from dragoman.addons.serving.access.client_address import is_trusted_proxy, parse_networks
from dragoman.addons.serving.config import ServeConfig

_HOST = re.compile(r"[A-Za-z0-9._-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*/?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class PublicUrl:
    """Returns the base of links to the server.

    It is the setting `public_url` if that is given. Otherwise it is the URL of the request; the X-Forwarded headers
    Proto, Host, Port and Prefix replace its parts if they come from a proxy in `access.trusted_proxies`.
    """

    def __init__(self, config: ServeConfig) -> None:
        self._fixed, self._proxies = config.public_url, parse_networks(config.access.trusted_proxies)

    def base(self, request: Request) -> str:
        """Return the URL of the server for links in the answer to a request, with a slash at the end."""
        if self._fixed is not None:
            return f"{self._fixed.rstrip('/')}/"
        scheme, host, prefix = request.url.scheme, request.url.netloc, request.scope.get("root_path", "")
        if is_trusted_proxy(None if request.client is None else request.client.host, self._proxies):
            scheme = _forwarded(request, "proto", re.compile("https?")) or scheme
            host = _forwarded(request, "host", _HOST) or host
            port = _forwarded(request, "port", re.compile(r"\d{1,5}"))
            if port is not None and not re.search(r":\d+$", host):
                host += "" if port == _DEFAULT_PORTS.get(scheme) else f":{port}"
            prefix = _forwarded(request, "prefix", _PREFIX) or prefix
        return f"{scheme}://{host}{prefix.rstrip('/')}/"

    def origin(self, request: Request) -> str:
        """Return the scheme and authority of `base`, as browsers send it in the header Origin."""
        scheme, _, rest = self.base(request).partition("://")
        host = rest.partition("/")[0].lower()
        return f"{scheme}://{host.removesuffix(f':{_DEFAULT_PORTS.get(scheme)}')}"


def _forwarded(request: Request, name: str, pattern: "re.Pattern[str]") -> str | None:
    """Return the value that the nearest proxy wrote, which is the last one, or None if it is missing or invalid."""
    values: Sequence[str] = request.headers.getlist(f"x-forwarded-{name}")
    last = values[-1].rpartition(",")[2].strip() if values else ""
    return last if last and pattern.fullmatch(last) else None
