"""`Access`: identifies the client of a request, and decides whether it may be served now."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.serving.access.client_address import client_address, client_network, networks
from dragoman.serving.access.keys import Keys
from dragoman.serving.access.quota import Account, Quotas, Reservation
from dragoman.serving.config import AccessConfig


@dataclass(frozen=True)
class Client:
    """The sender of a request.

    network: its address, or the first 64 bits of an IPv6 address; key: the id of its key, None if the server has no
    keys. account: the account to which its requests are charged: that of the key, from whatever address it is used, or
    that of the network if the server has no keys.
    """

    network: str
    key: str | None
    account: Account


class Access:
    """Keys, addresses and quotas together, independent of HTTP. Safe for use by several threads.

    Quotas are per process: if several processes serve, each grants them in full. A revoked key is revoked for all.
    """

    def __init__(self, config: AccessConfig) -> None:
        """Raises what `Keys` raises, so that a server that requires keys does not start without their database."""
        self._config = config
        self._keys = None if config.keys is None else Keys(config.keys, create=False)
        self._proxies = networks(config.trusted_proxies)
        self._quotas = Quotas(config.most_clients)

    def client(self, key: str | None, peer: str | None, forwarded: Sequence[str] = ()) -> Client:
        """Identify the client. key: as it was sent, if any; peer, forwarded: as in `client_address`.

        Raises KeyRefused if keys are required and this one is not valid; without keys, `key` is ignored.
        """
        network = client_network(client_address(peer, forwarded, self._proxies))
        requests, tokens = self._config.requests_per_minute, self._config.tokens_per_minute
        if self._keys is None:
            return Client(network, None, Account(network, requests, tokens))
        found = self._keys.check(key)
        if found.requests_per_minute is not None:
            requests = found.requests_per_minute
        if found.tokens_per_minute is not None:
            tokens = found.tokens_per_minute
        return Client(network, found.id, Account(found.id, requests, tokens))

    def reserve(self, client: Client, tokens: int, requests: int = 1) -> Reservation:
        """Take requests and tokens from the client's quota before its work is queued. Raises QuotaExceeded."""
        return self._quotas.reserve(client.account, tokens, requests)

    def close(self) -> None:
        """Close the database of keys."""
        if self._keys is not None:
            self._keys.close()
