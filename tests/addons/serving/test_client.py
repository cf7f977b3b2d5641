"""Clients: their requests, retries, and LibreTranslate's own client, unmodified."""

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI
from scripted_server import listening, served, shouting

from dragoman.addons.serving.client import AsyncClient, Client, Retry, ServerError, translate_lines
from dragoman.cli.main import main

QUICK = Retry(attempts=4, first=0.001)
Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def answering(answer: Callable[[int], Answer | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server whose n-th response is given, or that closes the connection; yields its address and requests."""
    sent: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["content-length"])))
            found = answer(len(sent))
            if found is None:
                self.connection.close()
                return
            status, headers, body = found
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()


DONE: Answer = (200, {}, b'{"translations": [{"text": "gut"}]}')


def test_libretranslates_client_unmodified() -> None:
    with served({"en-de": shouting}) as service, listening(service) as url:
        client = LibreTranslateAPI(url)
        assert client.translate("A dog & a cät.", "en", "de") == "A DOG & A CÄT."
        assert client.detect("a dog")[0]["language"] == "en"
        assert client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
        with pytest.raises(HTTPError) as refused:
            client.translate("a", "en", "xx")
        assert refused.value.code == 400 and "error" in json.loads(refused.value.read())


def test_our_clients() -> None:
    with served({"en-de": shouting}) as service, listening(service) as url:
        with Client(url + "/", retry=QUICK) as client:
            assert client.translate("a", "de") == "A" and client.translate(["a", "", "b"], "de", "en") == ["A", "", "B"]
            whole = client.translate_fully("a", "de", nbest=2)
            assert [each["text"] for each in whole["translations"][0]["sentences"][0]["hypotheses"]] == ["A", "A!"]
            assert client.detect("a")[0]["language"] == "en" and client.languages()[0]["code"] == "en"
            with pytest.raises(ServerError, match="xx is not supported") as refused:
                client.translate("a", "xx")
            assert refused.value.status == 400
            lines = [f"line {number}" if number % 7 else "" for number in range(200)]
            assert list(translate_lines(iter(lines), client, "de", lines_per_request=9)) == [
                line.upper() for line in lines
            ]

        async def work() -> list[str]:
            async with AsyncClient(url) as client:
                return await asyncio.gather(*(client.translate(f"text {number}", "de") for number in range(20)))

        assert asyncio.run(work()) == [f"TEXT {number}" for number in range(20)]


@pytest.mark.parametrize("busy", [429, 503, None])
def test_requests_to_a_busy_server_are_retried(busy: int | None) -> None:
    def answer(number: int) -> Answer | None:
        return DONE if number == 3 else None if busy is None else (busy, {}, b'{"error": "busy"}')

    with answering(answer) as (url, sent), Client(url, key="k", retry=QUICK) as client:
        assert client.translate("a", "de") == "gut"
        assert len(sent) == 3 and json.loads(sent[0])["api_key"] == "k"


@pytest.mark.parametrize(
    ("given", "status", "tries", "told"),
    [
        ((400, {}, b'{"error": "no such language"}'), 400, 1, "no such language"),
        ((403, {}, b'{"error": "wrong key"}'), 403, 1, "wrong key"),
        ((429, {}, b'{"error": "too often"}'), 429, 4, "too often"),
        ((503, {"retry-after": "3600"}, b"{}"), 503, 1, "status 503"),
        ((200, {}, b"<html>"), 200, 1, "does not respond like"),
        ((500, {}, b"<html>"), 500, 1, "status 500"),
        (None, None, 4, "cannot be reached"),
    ],
)
def test_refusals_are_reported(given: Answer | None, status: int | None, tries: int, told: str) -> None:
    with answering(lambda _: given) as (url, sent), Client(url, retry=QUICK) as client:
        with pytest.raises(ServerError, match=told) as error:
            client.translate("a", "de")
        assert error.value.status == status and len(sent) == tries


def test_waiting_times() -> None:
    retry = Retry(attempts=9, first=1, longest=10, draw=random.Random(1))
    waits = [retry.wait(attempt, 503, {}) for attempt in range(1, 9)]
    for wait, most in zip(waits, [1, 2, 4, 8, 10, 10, 10, 10], strict=True):
        assert wait is not None and most / 2 <= wait <= most
    assert retry.wait(9, 503, {}) is None and retry.wait(1, 404, {}) is None
    assert retry.wait(1, 429, {"retry-after": "7"}) == 7
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=8), usegmt=True)
    assert 5 < (retry.wait(1, 429, {"retry-after": soon}) or 0) <= 8
    assert retry.wait(1, 429, {"retry-after": "11"}) is None
    assert (retry.wait(1, 429, {"retry-after": "soon"}) or 0) <= 1


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("a dog\n\nb\n", encoding="utf-8")
    asked = ["-i", str(tmp_path / "in.txt"), "-t", "de", "-q"]
    with served({"en-de": shouting}) as service, listening(service) as url:
        assert main(["client", url, *asked]) == 0
        assert capfd.readouterr().out == "A DOG\n\nB\n"
        assert main(["client", url, *asked, "-o", str(tmp_path / "out.txt"), "-s", "en", "--keep", "url"]) == 0
        assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "A DOG\n\nB\n"
        assert main(["client", url, *asked, "-s", "xx", "-o", str(tmp_path / "none.txt")]) == 1
        assert "xx is not supported" in capfd.readouterr().err and not (tmp_path / "none.txt").exists()
