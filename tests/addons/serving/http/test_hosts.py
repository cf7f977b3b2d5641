"""Pages whose name resolves to 127.0.0.1 (DNS rebinding) have no access to a server on a loopback address."""

from typing import Any

import httpx
import pytest
from scripted_server import FREE, asked, served, shouting

NAMES = {
    "127.0.0.1:5000": True,
    "127.0.0.1": True,
    "[::1]:5000": True,
    "192.168.1.7": True,
    "localhost": True,
    "LOCALHOST:80": True,
    "localhost.:80": True,
    "app.localhost": True,
    "listed.example": True,
    "Listed.Example:8080": True,
    "evil.example": False,
    "evil.example:5000": False,
    "127.0.0.1.evil.example": False,
    "localhost.evil.example": False,
    "evil.example.": False,
    "127.0.0.1@evil.example": False,
    "evil.example@127.0.0.1": False,
    "evil.example/127.0.0.1": False,
    "evil.example#127.0.0.1": False,
    "127.0.0.1:x": False,
    "[::1": False,
    "2130706433": False,
    "": False,
}


def statuses(names: list[str], method: str = "GET", path: str = "/languages", **settings: Any) -> list[int]:
    async def work(client: httpx.AsyncClient) -> list[int]:
        answers = [await client.request(method, path, headers={"host": name}) for name in names]
        assert all(list(each.json()) == ["error"] for each in answers if each.status_code == 421)
        return [each.status_code for each in answers]

    with served({"en-de": shouting}, **settings) as service:
        return asked(service, work)  # type: ignore[no-any-return]


def test_only_the_names_of_the_server_are_accepted() -> None:
    found = statuses(list(NAMES), hosts=["listed.example"])
    assert dict(zip(NAMES, found, strict=True)) == {name: 200 if good else 421 for name, good in NAMES.items()}


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "0.0.0.0"},
        {"host": "192.0.2.1"},
        {"host": "::"},
        {"public_url": "https://evil.example/translate"},
        {"access": {**FREE, "trusted_proxies": ["127.0.0.1"]}},
    ],
)
def test_public_servers_accept_their_names(settings: dict[str, Any]) -> None:
    assert statuses(["evil.example"], **settings) == [200]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.0.1", "::1", "[::1]", "localhost"])
def test_every_loopback_address_is_protected(host: str) -> None:
    assert statuses(["evil.example"], host=host) == [421]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/translate"), ("GET", "/metrics"), ("GET", "/health"), ("GET", "/"), ("PUT", "/none")],
)
def test_every_route_is_protected(method: str, path: str) -> None:
    assert statuses(["evil.example"], method, path) == [421]
