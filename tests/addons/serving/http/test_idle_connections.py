"""The idle connections of a network and of a trusted proxy."""

from dragoman.addons.serving.access.client_address import parse_networks
from dragoman.addons.serving.http.idle_connections import IdleConnections


def test_a_trusted_proxy_keeps_its_connections() -> None:
    class Counted:
        closed = 0

        def close_idle(self) -> None:
            Counted.closed += 1

    idle = IdleConnections(8, parse_networks(["10.0.0.0/8"]))
    held = [Counted() for _ in range(20)]
    for each in held:
        idle.add(each, "10.1.1.1")
    assert Counted.closed == 0
    for number, each in enumerate(held):
        idle.add(each, f"2001:db8::{number}")  # one client: its provider gave it a network of many addresses
    assert Counted.closed == 18
