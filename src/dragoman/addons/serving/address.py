"""The address that a server listens on, and the URL that a browser on this machine can open."""

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
