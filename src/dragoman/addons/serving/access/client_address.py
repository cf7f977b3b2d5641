"""The client address of a request that came through trusted proxies, and the network that counts as one client."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dragoman.base.errors import ConfigError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NETWORK_BITS = 64
"""Number of leading bits of an IPv6 address that identify a network. A client can choose the rest (RFC 4291, 2.5.4)."""

_LONGEST_ADDRESS = 100
"""Maximum number of characters of an address with its zone and port."""


def parse_networks(values: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks such as `10.0.0.0/8`, `::1` or `192.168.1.7`. Raises ConfigError for an invalid one."""
    parsed = []
    for value in values:
        try:
            parsed.append(ip_network(value.strip()))
        except ValueError as error:
            raise ConfigError(f"{value!r} is not a network: {error}. Write 10.0.0.0/8 or a single address") from None
    return tuple(parsed)


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """Return the client's address: the right-most one that does not belong to a trusted proxy.

    peer: the address at the other end of the connection; None or any other text for a Unix socket. forwarded: the
    values of all X-Forwarded-For headers, in order. trusted: the networks of trusted proxies.

    Each proxy appends the address of its client on the right. Everything further left may be forged by the client. The
    list is therefore read from the right as long as the addresses belong to trusted proxies. If the last of these
    proxies appended no valid address, the client is unknown, and the address of the proxy is returned. Returns None if
    the peer has no address.
    """
    client = _parse_address(peer or "")
    if client is None or not _is_within(client, trusted):
        return client
    for value in reversed(forwarded):
        remaining = value
        while remaining:
            remaining, _, last = remaining.rpartition(",")
            if not last.strip():
                continue
            previous = _parse_address(last)
            if previous is None:
                return client
            client = previous
            if not _is_within(client, trusted):
                return client
    return client


def is_trusted_proxy(peer: str | None, trusted: Sequence[Network]) -> bool:
    """Return whether the other end of a connection is a trusted proxy. peer, trusted: as in `client_address`."""
    address = _parse_address(peer or "")
    return address is not None and _is_within(address, trusted)


def client_network(address: Address | None) -> str:
    """Return the network that counts as one client: an IPv4 address, an IPv6 /64 network, or `local` for None."""
    if address is None:
        return "local"
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), _NETWORK_BITS), strict=False))


def _is_within(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _parse_address(text: str) -> Address | None:
    """Parse an address in any form that proxies use: with a port, in brackets, in quotes, or IPv4 mapped to IPv6."""
    return None if len(text) > _LONGEST_ADDRESS else _parse_short_address(text)


@lru_cache(maxsize=2048)  # each connection and each request asks for it several times
def _parse_short_address(text: str) -> Address | None:
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
