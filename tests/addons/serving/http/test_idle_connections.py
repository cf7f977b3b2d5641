"""Connections that one client, its network or a trusted proxy keeps open without a complete request."""

import contextlib
import time

import pytest
from raw_connections import BODY, GOOD, HEAD, asked, connected, received
from scripted_server import asked as scripted_asked
from scripted_server import listening, served, shouting
from waiting import PATIENCE

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


def test_one_client_cannot_use_up_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its oldest idle connections are closed: unfinished headers, silence, and connections kept after an answer."""
    monkeypatch.setattr("dragoman.addons.serving.http.connection._HEADER_SECONDS", PATIENCE)
    settings = {"limits": {"connections": 8}, "access": {"trusted_proxies": ["127.0.0.2"]}}
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    with served({"en-de": shouting}, **settings) as service, listening(service) as url, contextlib.ExitStack() as stack:
        kept = stack.enter_context(connected(url))
        kept.sendall(request)
        assert kept.recv(4096).endswith(GOOD)
        others = [stack.enter_context(connected(url)) for _ in range(12)]
        for other in others[:-2]:
            with contextlib.suppress(OSError):
                other.sendall(b"POST /translate HTTP/1.1\r\n")
        assert received(kept) == b"" and [received(other) for other in others[:-2]] == [b""] * 10
        others[-1].sendall(request)
        assert others[-1].recv(4096).endswith(GOOD), "the newest are open"
        assert asked(url) == GOOD


def test_answers_of_connections_are_counted_and_have_security_headers() -> None:
    """Answers to input that is no request, and to requests for which there are too many connections."""
    with (
        served({"en-de": shouting}, limits={"connections": 1}, access={"trusted_proxies": ["127.0.0.1"]}) as service,
        listening(service) as url,
        contextlib.ExitStack() as stack,
    ):
        stack.enter_context(connected(url))
        for sent, status in (
            (b"nonsense\r\n\r\n", b"400"),
            (HEAD + b"\r\n", b"503"),
            (b"GET / " + b"a" * 70_000, b"431"),
        ):
            client = stack.enter_context(connected(url))
            client.sendall(sent)
            head = client.recv(4096)
            assert head.startswith(b"HTTP/1.1 " + status) and b"x-content-type-options: nosniff" in head
        metrics = scripted_asked(service, lambda client: client.get("/metrics")).text
        for status in (b"400", b"431", b"503"):
            assert f'dragoman_requests_total{{route="none",status="{status.decode()}"}} 1' in metrics
        assert 'reason="unavailable"} 1' in metrics and 'reason="invalid"} 2' in metrics


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 1000\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        HEAD + b"Content-Length: 99999999\r\n\r\n{",
    ],
    ids=["slow", "chunked", "too large"],
)
def test_one_client_cannot_use_up_the_connections_with_bodies(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.addons.serving.http.connection._LINGER_SECONDS", PATIENCE)
    with (
        served({"en-de": shouting}, limits={"connections": 8}) as service,
        listening(service) as url,
        contextlib.ExitStack() as stack,
    ):
        others = [stack.enter_context(connected(url)) for _ in range(12)]
        for other in others:
            other.sendall(sent)
        for other in others[:-2]:
            with contextlib.suppress(ConnectionError):
                while other.recv(4096):
                    pass
        assert asked(url) == GOOD


def test_slow_bodies_within_the_limit_are_answered() -> None:
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY)
    with (
        served({"en-de": shouting}, limits={"connections": 8}) as service,
        listening(service) as url,
        connected(url) as first,
        connected(url) as second,
    ):
        first.sendall(request + BODY[:1])
        time.sleep(0.1)
        second.sendall(request + BODY + request + BODY[:1])
        assert second.recv(4096).endswith(GOOD)
        first.sendall(BODY[1:])
        assert first.recv(4096).endswith(GOOD)
