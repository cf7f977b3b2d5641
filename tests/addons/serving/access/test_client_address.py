"""Client addresses behind proxies, and with forged headers."""

from ipaddress import ip_address

import pytest

from dragoman.addons.serving.access.client_address import client_address, client_network, parse_networks
from dragoman.base.errors import ConfigError

OWN = parse_networks(["10.0.0.0/8", "::1", "fd00::/8"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.5", [], "203.0.113.5"),
        # not a trusted proxy: its header is ignored
        ("203.0.113.5", ["198.51.100.1"], "203.0.113.5"),
        ("203.0.113.5", ["10.0.0.1"], "203.0.113.5"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::1", ["198.51.100.1"], "198.51.100.1"),
        # the client may have written everything to the left of its own address
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.7, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["127.0.0.1,::1,198.51.100.1"], "198.51.100.1"),
        # through two trusted proxies
        ("10.0.0.1", ["198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1, 10.0.0.2, 10.9.9.9"], "198.51.100.1"),
        # the client, and then a proxy that adds a separate header
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1", "10.0.0.2"], "198.51.100.1"),
        # all trusted
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        # a proxy that writes no address
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, _hidden, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [" , ,, "], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, "], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.01"], "10.0.0.1"),  # octal for some programs: not an address
        # ports, brackets, mapped addresses, zones
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ['"[2001:db8::1]:4711"'], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]evil"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:port"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("fe80::1%eth0", [], "fe80::1"),
        ("fd00::5", ["2001:db8::1"], "2001:db8::1"),
        (None, ["198.51.100.1"], None),
        ("", [], None),
        ("/run/dragoman.sock", ["198.51.100.1"], None),
    ],
)
def test_the_rightmost_untrusted_address(peer: str | None, forwarded: list[str], client: str | None) -> None:
    assert client_address(peer, forwarded, OWN) == (None if client is None else ip_address(client))


def test_clients_cannot_forge_their_address() -> None:
    for written in ("", "10.0.0.1", "::1", "8.8.8.8, 10.0.0.1", "x" * 10_000, ",".join(["10.0.0.1"] * 1000), "\0", "é"):
        # the proxy appends the address of its client, to the header or in another one
        for forwarded in ([f"{written}, 198.51.100.1"], [written, "198.51.100.1"]):
            assert client_address("10.0.0.1", forwarded, OWN) == ip_address("198.51.100.1")
        assert client_address("198.51.100.1", [written], OWN) == ip_address("198.51.100.1")


def test_without_trusted_networks_the_peer_is_the_client() -> None:
    assert client_address("127.0.0.1", ["198.51.100.1"], ()) == ip_address("127.0.0.1")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
    ],
)
def test_addresses_that_count_as_one_client(address: str, network: str) -> None:
    assert client_network(ip_address(address)) == network


def test_a_unix_socket_is_local() -> None:
    assert client_network(None) == "local"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "localhost", "", "10.0.0.0/33", "1.2.3"])
def test_invalid_networks_are_reported(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a network"):
        parse_networks(["::1", text])
