"""The address that a server listens on, and the URL that it prints."""

import socket
import urllib.request
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from dragoman.addons.serving.address import browser_url, listen, network_urls
from dragoman.base.errors import ConfigError


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:5000"),
        ("::1", "http://[::1]:5000"),
        ("[::1]", "http://[::1]:5000"),
        ("0.0.0.0", "http://127.0.0.1:5000"),
        ("", "http://127.0.0.1:5000"),
        ("::", "http://[::1]:5000"),
        ("0::0", "http://[::1]:5000"),
        ("localhost", "http://localhost:5000"),
        ("2001:db8::7", "http://[2001:db8::7]:5000"),
        ("fe80::1%eth0", "http://[fe80::1%25eth0]:5000"),
    ],
)
def test_the_url_can_be_opened(host: str, url: str) -> None:
    assert browser_url(host, 5000) == url


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "0.0.0.0", "::", "", "localhost"])
def test_the_printed_url_reaches_the_server(host: str) -> None:
    """With port 0, the system chooses a port."""
    try:
        listening = listen(host, 0, 5)
    except ConfigError:
        if ":" in host:
            pytest.skip("this machine has no IPv6")
        raise
    with closing(listening):
        server = HTTPServer(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = listening
        thread = Thread(target=server.handle_request, daemon=True)
        thread.start()
        with urllib.request.urlopen(browser_url(host, listening.getsockname()[1]), timeout=10) as answer:
            assert answer.status == 204
        thread.join(10)
    assert listening.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY only then


@pytest.mark.parametrize("host", ["no-such-host.invalid", "300.1.1.1", "x" * 300, "a..b", "192.0.2.1"])
def test_an_address_of_another_machine_is_rejected(host: str) -> None:
    with pytest.raises(ConfigError, match="choose another --host or --port"):
        listen(host, 0, 5)


def test_a_port_in_use_is_rejected() -> None:
    with closing(listen("127.0.0.1", 0, 5)) as one, pytest.raises(ConfigError, match="in use"):
        listen("127.0.0.1", one.getsockname()[1], 5)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost"])
def test_a_server_for_this_machine_has_no_urls_for_others(host: str) -> None:
    assert network_urls(host, 5000) == []


def test_the_urls_for_others() -> None:
    assert network_urls("192.0.2.7", 5000) == ["http://192.0.2.7:5000"]
    assert network_urls("[2001:db8::7]", 5000) == ["http://[2001:db8::7]:5000"]
    for host in ("0.0.0.0", "::", ""):
        *addresses, name = network_urls(host, 5000)
        assert name == f"http://{socket.gethostname()}:5000"
        assert not [url for url in addresses if "127." in url or "[::1]" in url]


def test_a_server_on_all_addresses_answers_at_the_first_url() -> None:
    url, *others = network_urls("0.0.0.0", 0)
    if not others:
        pytest.skip("this machine has no network")
    address = url.removeprefix("http://").removesuffix(":0")
    with closing(listen("0.0.0.0", 0, 1)) as listening, socket.create_connection((address, listening.getsockname()[1])):
        pass
