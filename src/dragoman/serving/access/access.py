"""`Access`: whose request it is, and whether it may be served now."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.serving.access.client_address import client_address, client_network, networks
from dragoman.serving.access.keys import Keys
from dragoman.serving.access.quota import Account, Quotas, Refused, Reservation
from dragoman.serving.config import AccessConfig


@dataclass(frozen=True)
class Client:
    """Who asks. network: the address, of IPv6 its first 64 bits; key: the id of the key, None where there are no keys.

    account: whom the request is counted for: the key, from wherever it is used; without keys the network.
    """

    network: str
    key: str | None
    account: Account


class Access:
    """Keys, addresses and quotas together; it knows nothing of HTTP. Safe for threads.

    A process has its own: where several serve, each grants the quotas, but what is revoked is revoked for all.
    """

    def __init__(self, config: AccessConfig) -> None:
        """Raises what `Keys` raises, so that a server does not start with keys on and none to look them up in."""
        self._config = config
        self._keys = None if config.keys is None else Keys(config.keys, create=False)
        self._proxies = networks(config.trusted_proxies)
        self._quotas = Quotas(config.most_clients)

    def client(self, key: str | None, peer: str | None, forwarded: Sequence[str] = ()) -> Client:
        """Who asks. key: as it was sent, if it was; peer, forwarded: as `client_address` takes them.

        Raises KeyRefused where keys are on and this is none that opens; a key is not looked at where they are off.
        """
        network = client_network(client_address(peer, forwarded, self._proxies))
        usual = (self._config.requests_per_minute, self._config.tokens_per_minute)
        if self._keys is None:
            return Client(network, None, Account("address", network, *usual))
        found = self._keys.check(key)
        own = (found.requests_per_minute, found.tokens_per_minute)
        requests, tokens = (ours if its is None else its for its, ours in zip(own, usual, strict=True))
        return Client(network, found.id, Account("key", found.id, requests, tokens))

    def reserve(self, client: Client, tokens: int, requests: int = 1) -> Reservation | Refused:
        """Requests and tokens, or nothing. To be asked before work is queued; what is not used goes back."""
        return self._quotas.reserve([client.account], tokens, requests)

    def close(self) -> None:
        """The database of keys is closed."""
        if self._keys is not None:
            self._keys.close()
