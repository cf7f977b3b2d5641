"""`Access`: identifies the client of a request, and enforces its quotas."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.serving.access.client_address import client_address, client_network, parse_networks
from dragoman.serving.access.keys import Keys
from dragoman.serving.access.quota import Account, Quotas, Reservation
from dragoman.serving.config import AccessConfig


@dataclass(frozen=True)
class Client:
    """The sender of a request.

    network: its IPv4 address, or the first 64 bits of its IPv6 address. key: the id of its key; None if the server
    requires no keys. account: the account to which its requests are charged, which belongs to the key, or to the
    network if the server requires no keys.
    """

    network: str
    key: str | None
    account: Account


class Access:
    """Combines keys, addresses and quotas, independent of HTTP. Thread-safe.

    Quotas are per process: each of several server processes grants them in full. Revoking a key affects all processes.
    """

    def __init__(self, config: AccessConfig) -> None:
        """Raises the errors of `Keys`, so that a server that requires keys does not start without its key database."""
        self._config = config
        self._keys = None if config.keys is None else Keys(config.keys, create=False)
        self._proxies = parse_networks(config.trusted_proxies)
        self._quotas = Quotas(config.most_clients)

    def client(self, key: str | None, peer: str | None, forwarded: Sequence[str] = ()) -> Client:
        """Identify the client. key: the API key of the request, if any. peer, forwarded: see `client_address`.

        Raises InvalidKey if keys are required and `key` is not valid. If no keys are required, `key` is ignored.
        """
        network = client_network(client_address(peer, forwarded, self._proxies))
        requests, tokens = self._config.requests_per_minute, self._config.tokens_per_minute
        if self._keys is None:
            return Client(network, None, Account(network, requests, tokens))
        record = self._keys.check(key)
        if record.requests_per_minute is not None:
            requests = record.requests_per_minute
        if record.tokens_per_minute is not None:
            tokens = record.tokens_per_minute
        return Client(network, record.id, Account(record.id, requests, tokens))

    def reserve(self, client: Client, tokens: int, requests: int = 1) -> Reservation:
        """Reserve requests and tokens of the client's quota before its texts are queued. Raises QuotaExceeded."""
        return self._quotas.reserve(client.account, tokens, requests)

    def close(self) -> None:
        """Close the key database."""
        if self._keys is not None:
            self._keys.close()
