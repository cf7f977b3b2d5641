"""`IdleConnections`: limits the connections that one client keeps open without a complete request."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from dragoman.addons.serving.access.client_address import Network, client_address, client_network, is_trusted_proxy


class Closable(Protocol):
    """A connection that can be closed."""

    def close_idle(self) -> None:
        """Close the connection, which has no complete request."""
        ...


class IdleConnections:
    """The connections of a server on which no request is being answered, by the network of the client.

    They also include those on which a request has begun and is incomplete, or was answered before it was complete. If
    a network has more than a quarter of the server's connections, its oldest is closed, so that one client cannot use
    up the connections of all. Clients that keep connections open connect again. A proxy in `trusted` may keep as many
    open as it wants.
    """

    def __init__(self, connections: int, trusted: Sequence[Network] = ()) -> None:
        """connections: the server's maximum number of connections."""
        self._most, self._trusted = max(1, connections // 4), trusted
        self._by_network: defaultdict[str, dict[Closable, None]] = defaultdict(dict)
        self._networks: dict[Closable, str] = {}

    def add(self, connection: Closable, peer: str | None) -> None:
        """Note that a connection is idle. peer: its address at the other end."""
        if connection in self._networks or is_trusted_proxy(peer, self._trusted):
            return
        network = self._networks[connection] = client_network(client_address(peer, (), ()))
        idle = self._by_network[network]
        idle[connection] = None
        if len(idle) > self._most:
            oldest = next(iter(idle))
            self.discard(oldest)
            oldest.close_idle()

    def discard(self, connection: Closable) -> None:
        """Note that a connection has a complete request, or has ended."""
        network = self._networks.pop(connection, None)
        if network is not None:
            idle = self._by_network[network]
            del idle[connection]
            if not idle:
                del self._by_network[network]
