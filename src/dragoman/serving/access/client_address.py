"""The address that a request came from, behind trusted proxies, and which addresses count as one client."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dragoman.base.errors import ConfigError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NETWORK_BITS = 64
"""The leading bits of an IPv6 address that name a network; a client can choose the others (RFC 4291, 2.5.4)."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks such as `10.0.0.0/8`, `::1` or `192.168.1.7`. Raises ConfigError for an invalid one."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text.strip()))
        except ValueError as error:
            raise ConfigError(f"{text!r} is not a network: {error}. Write 10.0.0.0/8 or a single address") from None
    return tuple(found)


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """Return the client's address: the right-most one that does not belong to a trusted proxy.

    peer: the other end of the connection; None, or not an address, for a Unix socket. forwarded: the values of all
    X-Forwarded-For headers, in order. trusted: the networks of the operator's own proxies.

    Each proxy appends the address of its own client on the right; everything further left may be forged by the client.
    The list is therefore read from the right for as long as each address belongs to a trusted proxy. If the last such
    proxy appended no address, the client is unknown, and the proxy's address is returned. Returns None if the peer has
    no address.
    """
    client = _address(peer or "")
    if client is None or not _within(client, trusted):
        return client
    for value in reversed(forwarded):
        rest = value
        while rest:
            rest, _, last = rest.rpartition(",")
            if not last.strip():
                continue
            before = _address(last)
            if before is None:
                return client
            client = before
            if not _within(client, trusted):
                return client
    return client


def client_network(address: Address | None) -> str:
    """Return the network that counts as one client: an IPv4 address, an IPv6 /64 network, or `local` for None."""
    if address is None:
        return "local"
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), _NETWORK_BITS), strict=False))


def _within(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _address(text: str) -> Address | None:
    """Parse an address as proxies write it: with a port, in brackets, in quotes, or IPv4 mapped to IPv6."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text, bracket, port = text[1:].partition("]")
        if not bracket or not (port == "" or (port.startswith(":") and port[1:].isdecimal())):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not port.isdecimal():
            return None
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
