"""The address that a server listens on, and the URLs that browsers on this machine and on others can open."""

import socket
from ipaddress import ip_address

from dragoman.base.errors import ConfigError


def listen(host: str, port: int, connections: int) -> socket.socket:
    """Return a socket that listens on an address, given as a name or as an IPv4 or IPv6 address, with or without [].

    port: 0 means any free port. connections: the number of connections that may wait to be accepted. A name is
    preferably resolved to an IPv4 address. Raises ConfigError.
    """
    listening = None
    try:
        addresses = socket.getaddrinfo(_bare(host) or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, bound = min(addresses, key=lambda address: address[0] != socket.AF_INET)
        # asyncio sets TCP_NODELAY only if the protocol is named; without it, the body of an answer would wait until its
        # headers are acknowledged, which takes a client 40 ms
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(bound)
        listening.listen(connections)
    except (OSError, UnicodeError) as error:
        if listening is not None:
            listening.close()
        reason = error.strerror if isinstance(error, OSError) else "not a valid name"
        address = f"{_quoted(host)}:{port}"
        raise ConfigError(f"cannot listen on {address} ({reason}): choose another --host or --port") from None
    return listening


def browser_url(host: str, port: int) -> str:
    """Return the URL of the server's page. If the server listens on all addresses, it contains the loopback address."""
    if not _bare(host):
        return f"http://127.0.0.1:{port}"
    try:
        address = ip_address(_bare(host))
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://127.0.0.1:{port}" if address.version == 4 else f"http://[::1]:{port}"
    return f"http://{_quoted(host)}:{port}"


def network_urls(host: str, port: int) -> list[str]:
    """Return the URLs under which other machines reach the server; none if it can be reached from this machine only.

    If the server listens on all addresses, these are the addresses from which this machine would send to another
    network, and the name of this machine, which some networks know.
    """
    if is_loopback(host):
        return []
    if not _is_unspecified(host):
        return [browser_url(host, port)]
    found = [_outgoing_address(socket.AF_INET, "192.0.2.1")]
    if ":" in host or not _bare(host):
        found.append(_outgoing_address(socket.AF_INET6, "2001:db8::1"))
    addresses = [address for address in found if address is not None and not is_loopback(address)]
    return [f"http://{_quoted(name)}:{port}" for name in [*addresses, socket.gethostname()]]


def _is_unspecified(host: str) -> bool:
    try:
        return not _bare(host) or ip_address(_bare(host)).is_unspecified
    except ValueError:
        return False


def _outgoing_address(family: socket.AddressFamily, destination: str) -> str | None:
    """Return the address of this machine on the way to another one, or None without a network. Nothing is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((destination, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on this address can be reached from this machine only."""
    name = _bare(host).lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _bare(host: str) -> str:
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _quoted(host: str) -> str:
    """Return the host as in a URL: IPv6 addresses in brackets (RFC 3986), with an escaped zone (RFC 6874)."""
    bare = _bare(host)
    return f"[{bare.replace('%', '%25')}]" if ":" in bare else bare
