"""`Access`: identifies the client of a request, and enforces its quotas."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.addons.serving.access.client_address import client_address, client_network, parse_networks
from dragoman.addons.serving.access.config import AccessConfig
from dragoman.addons.serving.access.keys import Keys
from dragoman.addons.serving.access.quota import Account, Quotas, Reservation


@dataclass(frozen=True)
class Client:
    """The sender of a request.

    network: its IPv4 address, or the first 64 bits of its IPv6 address. account: the account to which its requests are
    charged, which belongs to the key, or to the network if the server requires no keys. key, key_name: the id and the
    name of its key; None if the server requires no keys.
    """

    network: str
    account: Account
    key: str | None = None
    key_name: str | None = None


class Access:
    """Combines keys, addresses and quotas, independent of HTTP. Thread-safe.

    Quotas are per process: each of several server processes grants them in full. Revoking a key affects all processes.
    """

    def __init__(self, config: AccessConfig) -> None:
        """Raises the errors of `Keys`, so that a server that requires keys does not start without its key database."""
        self._config = config
        self._keys = None if config.keys is None else Keys(config.keys, create=False)
        self._proxies = parse_networks(config.trusted_proxies)
        self._quotas = Quotas(config.max_clients)

    @property
    def needs_keys(self) -> bool:
        """Whether clients need a key."""
        return self._keys is not None

    def sender(self, peer: str | None, forwarded: Sequence[str] = (), is_proxied: bool = False) -> Client:
        """Identify the client by its address only. peer, forwarded: as in `client_address`.

        is_proxied: whether a proxy has passed the request on. Programs on this machine have no quotas by default, but
        a proxy on this machine may pass on the requests of others, so its requests have.
        """
        address = client_address(peer, forwarded, self._proxies)
        requests, tokens = self._config.requests_per_minute, self._config.tokens_per_minute
        is_local = address is not None and address.is_loopback and not is_proxied and not forwarded
        if is_local and not self._config.loopback_quotas:
            requests = tokens = None
        network = client_network(address)
        return Client(network, Account(network, requests, tokens))

    def client(
        self, key: str | None, peer: str | None, forwarded: Sequence[str] = (), is_proxied: bool = False
    ) -> Client:
        """Identify the client. key: the key that was sent, if any; the other arguments are those of `sender`.

        Raises InvalidKey if keys are required and `key` is not valid. If no keys are required, `key` is ignored.
        """
        sender = self.sender(peer, forwarded, is_proxied)
        if self._keys is None:
            return sender
        requests, tokens = self._config.requests_per_minute, self._config.tokens_per_minute
        record = self._keys.check(key)
        if record.requests_per_minute is not None:
            requests = record.requests_per_minute
        if record.tokens_per_minute is not None:
            tokens = record.tokens_per_minute
        return Client(sender.network, Account(record.id, requests, tokens), record.id, record.name)

    def reserve(self, client: Client, tokens: int, requests: int = 1) -> Reservation:
        """Reserve requests and tokens of the client's quota before its texts are queued. Raises QuotaExceeded."""
        return self._quotas.reserve(client.account, tokens, requests)

    def close(self) -> None:
        """Close the key database."""
        if self._keys is not None:
            self._keys.close()
