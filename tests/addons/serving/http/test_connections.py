"""Clients that violate the protocol: they are disconnected, and others are not affected."""

import asyncio
import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from raw_connections import BODY, GOOD, HEAD, asked, connected, received
from scripted_server import listening, served, shouting
from waiting import PATIENCE, wait_until

from dragoman.addons.serving.address import listen
from dragoman.addons.serving.http.connection import Connection
from dragoman.addons.serving.queueing.line_queue import LineQueue


def test_headers_that_do_not_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    with served({"en-de": shouting}) as service, listening(service) as url:
        monkeypatch.setattr("dragoman.addons.serving.http.connection._HEADER_SECONDS", 0.3)
        with connected(url) as silent, connected(url) as slow:
            with contextlib.suppress(OSError):
                slow.sendall(b"POST /translate HTTP/1.1\r\n")

            def is_closed() -> bool:
                try:
                    slow.sendall(b"X-A: b\r\n")
                except OSError:
                    return True
                return False

            wait_until(is_closed, "an occasional header keeps the connection open", interval=0.05)
            assert received(slow) == received(silent) == b""
        monkeypatch.setattr("dragoman.addons.serving.http.connection._HEADER_SECONDS", PATIENCE)
        assert asked(url) == GOOD


def test_the_time_for_headers_applies_to_each_request_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[asyncio.TimerHandle] = []
    start = Connection._start_timer

    def noting(connection: Connection) -> None:
        start(connection)
        timers.append(connection._timer)

    monkeypatch.setattr(Connection, "_start_timer", noting)
    with served({"en-de": shouting}) as service, listening(service) as url, connected(url) as kept:
        for count in (1, 2):
            kept.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            found = b""
            while GOOD not in found:  # head and body may arrive separately
                part = kept.recv(4096)
                assert part
                found += part
            assert len(timers) == count and all(timer.cancelled() for timer in timers)


def test_headers_that_are_too_long() -> None:
    with served({"en-de": shouting}) as service, listening(service) as url:
        with connected(url) as abuser:
            with contextlib.suppress(OSError):
                abuser.sendall(HEAD)
                for _ in range(100):
                    abuser.sendall(b"X-Long: " + b"x" * 4000 + b"\r\n")
                    time.sleep(0.001)
            assert received(abuser)[:12] in (b"HTTP/1.1 431", b"")
        assert asked(url) == GOOD


def test_a_body_that_does_not_arrive() -> None:
    with served({"en-de": shouting}, limits={"body_seconds": 0.3}) as service, listening(service) as url:
        with connected(url) as slow:
            slow.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
            assert asked(url) == GOOD
            assert b" 408 " in slow.recv(4096)
        with connected(url) as gone:
            gone.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
        with connected(url) as half:
            half.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            half.shutdown(socket.SHUT_WR)
            received(half)
        assert asked(url) == GOOD


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_not_read_to_its_end(announced: bool) -> None:
    with served({"en-de": shouting}, limits={"body_bytes": 10_000}) as service, listening(service) as url:
        with connected(url) as big:
            if announced:
                big.sendall(HEAD + b"Content-Length: 10000001\r\n\r\n")
            else:
                big.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
                with contextlib.suppress(OSError):
                    for _ in range(20):
                        big.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            assert b" 413 " in big.recv(4096)
        assert asked(url) == GOOD


@pytest.mark.parametrize(
    "sent",
    [
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_input_that_is_not_http(sent: bytes) -> None:
    with served({"en-de": shouting}, limits={"body_seconds": 0.3}) as service, listening(service) as url:
        with connected(url) as abuser:
            abuser.sendall(sent)
            abuser.shutdown(socket.SHUT_WR)
            answer = received(abuser)
            assert answer == b"" or b" 400 " in answer or b" 408 " in answer
        assert asked(url) == GOOD


@contextlib.contextmanager
def occupied_server() -> Iterator[tuple[str, LineQueue]]:
    """The address and the queue of a server whose model works on a request until the end.

    Then, the model has translated that request and one more, but none of those whose clients have disconnected.
    """
    begun, go_on = threading.Event(), threading.Event()
    texts: list[str] = []

    def script(row: object) -> list[str]:
        texts.append(row.text)  # type: ignore[attr-defined]
        begun.set()
        assert go_on.wait(PATIENCE)
        return shouting(row)  # type: ignore[arg-type]

    limits, queue = {"seconds": 10 * PATIENCE}, {"cache_entries": 0}
    with served({"en-de": script}, limits=limits, queue=queue) as service, listening(service) as url:  # type: ignore[dict-item]
        first = threading.Thread(target=asked, args=(url,))
        first.start()
        assert begun.wait(PATIENCE)
        (model,) = service.directions.models
        yield url, model.batcher.queue
        go_on.set()
        first.join(PATIENCE)
        assert asked(url) == GOOD
        assert texts == ["a dog", "a dog"]


def wait_for_lines(queue: LineQueue, lines: int) -> None:
    """Wait until a queue has a number of lines."""
    wait_until(lambda: queue.lines == lines, f"the queue never has {lines} lines")


GONE = BODY.replace(b"a dog", b"gone")
GONE_REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(GONE) + GONE


def test_a_client_that_disconnects_leaves_nothing_in_the_queue() -> None:
    with occupied_server() as (url, queue):
        with connected(url) as gone:
            gone.sendall(GONE_REQUEST)
            wait_for_lines(queue, 1)
        wait_for_lines(queue, 0)


def test_answers_are_sent_at_once() -> None:
    """A body sent separately from its head would wait for the client's acknowledgement, 40 ms late."""

    async def options() -> list[int]:
        found: list[int] = []

        class Noting(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                connection = transport.get_extra_info("socket")
                found.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        with listen("127.0.0.1", 0, 10) as listening:
            server = await asyncio.get_running_loop().create_server(Noting, sock=listening)
            _, writer = await asyncio.open_connection(*listening.getsockname())
            while not found:
                await asyncio.sleep(0.01)
            writer.close()
            server.close()
        return found

    assert all(asyncio.run(options()))


def sent_and_received(url: str, head: bytes, chunk: bytes, times: int) -> bytes:
    """Send a head and then the same chunk again and again until the server closes the connection; return the answer."""
    with connected(url) as abuser:
        abuser.sendall(head)
        with contextlib.suppress(OSError):
            for _ in range(times):
                abuser.sendall(chunk)
        return received(abuser)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "chunk", "status"),
    [
        (CHUNKED + b"2;", b"x=y;" * 1000, 431),  # a chunk extension without end
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-Trailer: " + b"x" * 5000 + b"\r\n", 431),
        (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"a: b\r\n" * 4000, b"a: b\r\n" * 4000, 431),
        pytest.param(  # a body without end
            CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n", 413, marks=pytest.mark.slow
        ),
        (CHUNKED, b"1;" + b"e" * 4000 + b"\r\n{\r\n", 431),
    ],
)
def test_bodies_whose_encoding_never_ends(head: bytes, chunk: bytes, status: int) -> None:
    with served({"en-de": shouting}, limits={"body_bytes": 10_000}) as service, listening(service) as url:
        answer = sent_and_received(url, head, chunk, 100)
        assert answer[9:12] in (b"%d" % status, b"")
        assert asked(url) == GOOD


def test_trailers_do_not_change_the_headers() -> None:
    with served({"en-de": shouting}) as service, listening(service) as url, connected(url) as one:
        body = b"%x\r\n%b\r\n0\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n" % (len(BODY), BODY)
        one.sendall(CHUNKED + body)
        answer = b""
        while GOOD not in answer and (more := one.recv(4096)):
            answer += more
        assert GOOD in answer


def test_an_answer_before_the_body_closes_the_connection_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.addons.serving.http.connection._LINGER_SECONDS", 0.3)
    limits = {"body_bytes": 100, "body_seconds": 10 * PATIENCE}
    with served({"en-de": shouting}, limits=limits) as service, listening(service) as url, connected(url) as big:
        big.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
        assert b" 413 " in received(big)


def test_an_answer_that_is_not_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.addons.serving.http.connection._STALL_SECONDS", 0.3)
    lost: list[Connection] = []
    end = Connection.connection_lost

    def noting(connection: Connection, error: Exception | None) -> None:
        lost.append(connection)
        end(connection, error)

    monkeypatch.setattr(Connection, "connection_lost", noting)
    text = "a" * 900_000
    with served({"en-de": shouting}, limits={"characters": 10**6}) as service, listening(service) as url:
        body = b'{"q": "%b", "source": "de", "target": "de"}' % text.encode()
        with connected(url) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
            with contextlib.suppress(OSError):
                for _ in range(20):  # more than the buffers of the system can hold
                    deaf.sendall(head + body)
            wait_until(lambda: lost, "the connection stays open")
            assert asked(url) == GOOD
            with contextlib.suppress(OSError):
                while deaf.recv(1 << 20):
                    pass


@pytest.mark.parametrize(
    "body",
    [
        b'{"q": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
        b'{"q": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"q": [' + b'"a",' * 100_000 + b'"a"]}',
        b'{"q": [' + b"{}," * 100_000 + b"{}]}",
        b'{"q": "' + b"\\u0000" * 100_000 + b'"}',
        b'{"q": 1' + b"0" * 900_000 + b"}",
        b'{"q": "a", "alternatives": 1e999, "source": "en", "target": "de"}',
    ],
)
def test_hostile_json(body: bytes) -> None:
    with served({"en-de": shouting}) as service, listening(service) as url:
        with connected(url) as hostile:
            began = time.process_time()
            hostile.sendall(HEAD + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
            answer = received(hostile)
            assert answer[9:12] in (b"400", b"413"), answer[:200]
            assert time.process_time() - began < 20  # usually below 0.5 s; quadratic time would be minutes
        assert asked(url) == GOOD


def test_the_rest_of_an_endless_request_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.addons.serving.http.connection._LINGER_SECONDS", 0.5)
    monkeypatch.setattr("dragoman.addons.serving.http.connection._LINGER_BYTES", 100_000)
    limits = {"body_bytes": 1000}
    with served({"en-de": shouting}, limits=limits) as service, listening(service) as url, connected(url) as endless:
        endless.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        with contextlib.suppress(OSError):
            endless.settimeout(0.3)
            while sent < 20_000_000:
                sent += endless.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        assert sent < 20_000_000, "the system's buffers take several megabytes"
        endless.settimeout(PATIENCE)
        assert b" 413 " in received(endless)
        assert asked(url) == GOOD


def test_requests_sent_in_advance_end_when_the_client_disconnects() -> None:
    """Pipelined requests. uvicorn ends only the latest one, and would answer the others."""
    with occupied_server() as (url, queue):
        with connected(url) as gone:
            gone.sendall(GONE_REQUEST * 25)
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # resets the connection
            wait_for_lines(queue, 1)
        wait_for_lines(queue, 0)


def test_requests_sent_in_advance_are_answered_in_order() -> None:
    with served({"en-de": shouting}) as service, listening(service) as url, connected(url) as client:
        sent = [BODY.replace(b"a dog", b"dog %d" % number) for number in range(30)]
        client.sendall(b"".join(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in sent))
        found = b""
        while found.count(b"}") < len(sent) and (part := client.recv(65_536)):
            found += part
        assert [int(number) for number in re.findall(rb"DOG (\d+)", found)] == list(range(30))


@pytest.mark.parametrize(("count", "size"), [(200, 10), (20, 20_000)])
def test_too_many_requests_in_advance_close_the_connection(count: int, size: int) -> None:
    body = BODY.replace(b"a dog", b"a " * (size // 2))
    with served({"en-de": shouting}) as service, listening(service) as url:
        with connected(url) as client, contextlib.suppress(OSError):
            client.sendall((HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body) * count)
            assert received(client).count(b"HTTP/1.1 200") < count
        assert asked(url) == GOOD
