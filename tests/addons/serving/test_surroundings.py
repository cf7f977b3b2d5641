"""A server in a failing environment: a log that cannot be written, a clock that jumps."""

import json
import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import httpx
import pytest
from scripted_server import asked as asked_service
from scripted_server import served, shouting
from tiny_model import write_tiny_model
from training_runs import Process, Server
from waiting import PATIENCE, is_ready, wait_until

import dragoman.addons.serving


@contextmanager
def running(server: Server, tmp_path: Path, settings: str) -> Iterator[tuple[Process, str]]:
    """Start a server; yields its process, and its address once it is ready."""
    write_tiny_model(tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "serve.yaml"
    model = f"models: [{{path: {tmp_path / 'model'}, source: en, target: de}}]\nengine: {{name: torch}}\n"
    config.write_text(f"{model}port: {port}\n{settings}\n", encoding="utf-8")
    url = f"http://127.0.0.1:{port}"
    process = server.start(tmp_path, "serve", "--config", str(config))
    try:
        wait_until(lambda: is_ready(url) or not process.is_alive, interval=0.05)
        assert process.is_alive
        yield process, url
    finally:
        if process.is_alive:
            process.kill()
        process.wait()


def asked(url: str, text: str) -> str | int:
    """Return the translation, or the status of an error."""
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(f"{url}/translate", body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["translatedText"]  # type: ignore[no-any-return]
    except HTTPError as error:
        return error.code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("log", ["full", pytest.param("closed", marks=pytest.mark.slow)])
def test_a_log_that_cannot_be_written(log: str, server: Server, tmp_path: Path) -> None:
    if log == "full":
        (tmp_path / "stderr").symlink_to("/dev/full")
    else:
        os.mkfifo(tmp_path / "stderr")
    reader = os.open(tmp_path / "stderr", os.O_RDONLY | os.O_NONBLOCK)
    settings = "reload_seconds: 0.1\nqueue: {cache_entries: 0}"
    with running(server, tmp_path, settings) as (process, url):
        os.close(reader)
        wanted = asked(url, "a dog")
        assert isinstance(wanted, str)
        (tmp_path / "model" / "model.safetensors").write_bytes(b"nothing")  # it would warn about this
        time.sleep(0.5)
        assert [asked(url, "a dog") for _ in range(3)] == [wanted] * 3
        process.kill(signal.SIGTERM)
        assert process.wait() == 0


def test_a_clock_that_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotas, stored files and time limits of the server do not depend on the system clock."""
    real, offset = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + offset[0])
    document = {"files": {"file": ("a.txt", b"a dog")}, "data": {"source": "en", "target": "de"}}
    access = {"requests_per_minute": 6, "tokens_per_minute": None, "loopback_quotas": True}

    async def work(client: httpx.AsyncClient) -> None:
        async def status(text: str) -> int:
            answer = await client.post("/translate", json={"q": text, "source": "en", "target": "de"})
            return answer.status_code

        kept = (await client.post("/translate_file", **document)).json()["translatedFileUrl"]  # type: ignore[arg-type]
        years = 365 * 86_400.0
        for place, offset[0] in enumerate((10 * years, -10 * years, 3600, -3600, 0)):
            assert await status(f"text {place}") == 200, offset
        for offset[0] in (10 * years, -10 * years):  # the quota's minute has not passed before it has passed
            assert await status("one more") == 429, offset
            assert (await client.get(kept)).status_code == 200

    with served({"en-de": shouting}, access=access) as service:
        asked_service(service, work)


def test_only_logs_expiry_and_dates_in_answers_depend_on_the_system_clock() -> None:
    folder = Path(dragoman.addons.serving.__path__[0])
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"\btime\.time\(|datetime\.now|from time import .*\btime\b", path.read_text("utf-8"))
    }
    dated = {"http/routes/completions.py"}
    assert found == {"http/exchange.py", "access/keys.py", "suggestions.py", "client.py", "commands/keys.py"} | dated
