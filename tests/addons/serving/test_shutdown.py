"""The end of a server: accepted work is finished or answered in JSON, and a second signal ends the process at once."""

import asyncio
import http.client
import json
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from test_server import is_translating, processes_of, running, wait_for_end
from tiny_model import write_tiny_model
from training_runs import Server
from waiting import PATIENCE, wait_until

from dragoman.addons.serving import server as serving
from dragoman.addons.serving.config import ServeConfig

TEXT = "".join(f"A dog runs number {number} along the beach.\n" for number in range(4000))


def upload(url: str, answers: list[tuple[int, str, bytes]]) -> threading.Thread:
    """Send a file in a thread, which appends the answer: status, content type and body."""
    body = (
        b'--x\r\ncontent-disposition: form-data; name="source"\r\n\r\nen\r\n'
        b'--x\r\ncontent-disposition: form-data; name="target"\r\n\r\nde\r\n'
        b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        + TEXT.encode()
        + b"\r\n--x--\r\n"
    )

    def send() -> None:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
        connection.request("POST", "/translate_file", body, {"content-type": "multipart/form-data; boundary=x"})
        answer = connection.getresponse()
        answers.append((answer.status, answer.getheader("content-type", ""), answer.read()))

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_file_that_takes_longer_than_the_shutdown_is_answered_in_json(server: Server, tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    config = tmp_path / "serve.yaml"
    config.write_text("limits: {shutdown_seconds: 0.5}\n", encoding="utf-8")
    arguments = (str(tmp_path / "model"), "--languages", "en-de", "--engine", "torch", "--config", str(config))
    with running(server, tmp_path, *arguments) as (process, url):
        answers: list[tuple[int, str, bytes]] = []
        thread = upload(url, answers)
        wait_until(lambda: is_translating(url))
        process.kill(signal.SIGTERM)
        thread.join(PATIENCE)
        assert process.wait() == 0
        ((status, kind, body),) = answers
        assert status == 503 and kind == "application/json" and "shutting down" in json.loads(body)["error"]
        assert "Traceback" not in process.said


def is_closed(url: str) -> bool:
    """Return whether a server accepts no further connections."""
    host, _, port = url.removeprefix("http://").partition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("workers", [[], pytest.param(["--workers", "1"], marks=pytest.mark.slow)], ids=["0", "1"])
def test_a_second_signal_ends_the_process_at_once(workers: list[str], server: Server, tmp_path: Path) -> None:
    """Its workers end, too."""
    write_tiny_model(tmp_path / "model")
    arguments = (str(tmp_path / "model"), "--languages", "en-de", "--engine", "torch", *workers)
    with running(server, tmp_path, *arguments) as (process, url):
        processes = processes_of(process.pid)
        assert bool(processes) == bool(workers)
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
        connection.putrequest("POST", "/translate_file")  # a request that never ends
        connection.putheader("content-type", "multipart/form-data; boundary=x")
        connection.putheader("content-length", "1000")
        connection.endheaders(b"--x\r\n")
        process.kill(signal.SIGINT)
        wait_until(lambda: is_closed(url), "the server still accepts connections")
        assert process.is_alive
        process.kill(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
        wait_for_end(processes)
        assert "Traceback" not in process.said


def test_a_signal_while_models_are_being_loaded_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def load(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(1)  # meanwhile, the server closes its socket

    monkeypatch.setattr(serving.LoadedModels, "load", load)
    handlers = {number: signal.getsignal(number) for number in serving._SIGNALS}
    try:
        config = ServeConfig.model_validate({"models": [{"path": "m", "source": "en", "target": "de"}], "port": 0})
        asyncio.run(serving._serve(config, None, lambda shut_down: None))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
