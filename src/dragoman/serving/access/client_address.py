"""Which address a request came from, when proxies stand between, and what counts as one client."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dragoman.base.errors import ConfigError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NEIGHBOURS = 64
"""Leading bits of an IPv6 address that name a network: the rest anyone chooses for himself (RFC 4291, 2.5.4)."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Of settings such as `10.0.0.0/8`, `::1` or `192.168.1.7`. Raises ConfigError for what is none."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text.strip()))
        except ValueError as error:
            raise ConfigError(f"{text!r} is no network: {error}. Write 10.0.0.0/8, or an address alone") from None
    return tuple(found)


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """The address of the client: the right-most one that is not a trusted proxy's.

    peer: the other end of the connection; None, or what is no address, for a Unix socket. forwarded: the values of all
    X-Forwarded-For headers, in their order. trusted: networks of proxies of one's own.

    Each proxy writes at the right end whom it was asked by, and what stands further left a client may have written
    itself. So the list is believed from the right, only as long as it was a trusted proxy that wrote. Where such a one
    wrote no address, the client is not known and the proxy itself is given. None where the peer has no address.
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
    """What counts as one client: an IPv4 address, or the /64 network of an IPv6 address; `local` for no address."""
    if address is None:
        return "local"
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), _NEIGHBOURS), strict=False))


def _within(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _address(text: str) -> Address | None:
    """An address as proxies write it: with a port, in brackets, in quotes, an IPv4 address as an IPv6 one."""
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
