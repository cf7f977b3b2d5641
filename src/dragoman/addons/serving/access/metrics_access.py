"""`MetricsAccess`: decides who may read the metrics of a server."""

import hmac
from collections.abc import Sequence
from pathlib import Path

from dragoman.addons.serving.access.client_address import client_address, is_trusted_proxy, parse_networks
from dragoman.addons.serving.access.config import AccessConfig
from dragoman.base.errors import ConfigError


class MetricsAccess:
    """Admits requests with the token for metrics, and requests from certain networks. API keys grant no access."""

    def __init__(self, config: AccessConfig) -> None:
        """Raises ConfigError if the token file cannot be read or contains no token."""
        self._token = None if config.metrics_token is None else _read_token(config.metrics_token)
        self._networks = parse_networks(config.metrics_networks)
        self._proxies = parse_networks(config.trusted_proxies)

    def allows(self, token: str | None, peer: str | None, forwarded: Sequence[str], is_proxied: bool = False) -> bool:
        """Return whether a client may read the metrics.

        token: the token that was sent, if any; peer, forwarded: as in `client_address`. is_proxied: whether a proxy has
        passed the request on. The request then does not count as one from the proxy's own network, unless the proxy is
        one of `trusted_proxies` and has named the client.
        """
        if token and self._token and hmac.compare_digest(token.encode("utf-8", "replace"), self._token):
            return True
        if (forwarded or is_proxied) and not (forwarded and is_trusted_proxy(peer, self._proxies)):
            return False
        address = client_address(peer, forwarded, self._proxies)
        return address is not None and any(address in network for network in self._networks)


def _read_token(path: Path) -> bytes:
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"access.metrics_token: cannot read {path}: {error.strerror or error}") from None
    if len(token) < 16:
        raise ConfigError(f"access.metrics_token: {path} must contain a token of at least 16 characters")
    return token
