"""The server process, from start to shutdown, with real model folders."""

import json
import os
import re
import shutil
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest
from tiny_model import write_tiny_model
from training_runs import Process, Server
from waiting import PATIENCE, wait_until

from dragoman.addons.serving.access.keys import Keys
from dragoman.cli.main import main


@contextmanager
def running(server: Server, folder: Path, *arguments: str) -> Iterator[tuple[Process, str]]:
    """Run `dragoman serve` in a folder; yields its process, and its address once it is ready."""
    (folder / "stderr").write_text("", encoding="utf-8")
    process = server.start(folder, "serve", *arguments, "--port", "0")
    try:
        while not (address := re.search(r"listening at (\S+)", process.said)):
            assert process.is_alive, process.said
            time.sleep(0.02)
        yield process, address[1]
    finally:
        if process.is_alive:
            process.kill()
        process.wait()


def translated(url: str, text: str = "a dog") -> str:
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(f"{url}/translate", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)["translatedText"]


def test_a_server_from_start_to_shutdown(server: Server, tmp_path: Path) -> None:
    model = tmp_path / "model"
    write_tiny_model(model)
    config = tmp_path / "serve.yaml"
    config.write_text(
        f"models: [{{path: {model}, source: en, target: de}}]\nreload_seconds: 0.2\nqueue: {{cache_entries: 0}}\n",
        encoding="utf-8",
    )
    with running(server, tmp_path, "--config", str(config), "--engine", "torch") as (process, url):
        before = translated(url)
        assert translated(url) == before
        # another model replaces the folder: it is served soon, and no request fails meanwhile
        write_tiny_model(tmp_path / "new", seed=2)
        shutil.move(model, tmp_path / "old")
        shutil.move(tmp_path / "new", model)
        wait_until(lambda: translated(url) and "reloaded " in process.said, interval=0.05)
        after = translated(url)
        assert after != before
        # a damaged folder: the previous model is served
        (model / "model.safetensors").write_bytes(b"nothing")
        wait_until(lambda: "still serving the previous model" in process.said)
        assert translated(url) == after
        process.kill(signal.SIGTERM)
        assert process.wait() == 0
        with pytest.raises(URLError):
            translated(url)
    log = process.said
    assert '"route": "/translate"' in log and "a dog" not in log and "Traceback" not in log


def test_accepted_requests_are_answered_before_shutdown(server: Server, tmp_path: Path) -> None:
    model = tmp_path / "model"
    write_tiny_model(model)
    text = "A dog runs. " * 300
    with running(server, tmp_path, str(model), "--languages", "en-de", "--engine", "torch") as (process, url):
        answers: list[object] = []

        def ask() -> None:
            try:
                answers.append(translated(url, text))
            except (HTTPError, URLError, OSError) as error:
                answers.append(error if not isinstance(error, HTTPError) else (error.code, error.read()))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: is_translating(url))
        process.kill(signal.SIGTERM)
        for thread in threads:
            thread.join(PATIENCE)
        assert process.wait() == 0
        assert len(answers) == 3
        assert all(isinstance(answer, str) or answer[0] == 503 for answer in answers), answers  # type: ignore[index]
        assert any(isinstance(answer, str) for answer in answers), answers


def is_translating(url: str) -> bool:
    """Return whether texts are waiting for a model or being translated."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE) as answer:
        return re.search(r"^dragoman_queue_tokens\S* [1-9]", answer.read().decode(), re.MULTILINE) is not None


def processes_of(parent: int) -> list[int]:
    """Return the process's children and their descendants."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            identity, _, rest = status.read_text().partition(" (")
            if int(rest.rpartition(")")[2].split()[1]) == parent:
                found += [int(identity), *processes_of(int(identity))]
    return found


def wait_for_end(processes: list[int]) -> None:
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes), f"{processes} do not end")


@pytest.mark.slow
def test_workers_killed_under_load(server: Server, tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    uncached = tmp_path / "serve.yaml"
    uncached.write_text("queue: {cache_entries: 0}\naccess: {requests_per_minute: null}\n", encoding="utf-8")
    arguments = (str(tmp_path / "model"), "--languages", "en-de", "--config", str(uncached), "--workers", "2")
    with running(server, tmp_path, *arguments, "--engine", "torch") as (process, url):
        wanted, over = translated(url), threading.Event()
        answers: list[object] = []

        def ask() -> None:
            while not over.is_set():
                try:
                    answers.append(translated(url))
                except HTTPError as error:  # both processes that had received a batch were killed
                    answers.append(error.code)
                except OSError as error:
                    answers.append(error)

        (prefork,) = [each for each in processes_of(process.pid) if len(processes_of(each)) == 3]
        threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                before = len(answers)
                for worker in processes_of(prefork)[-1:]:
                    with suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
                wait_until(lambda count=before + 5: len(answers) >= count)
        finally:
            over.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert set(answers) <= {wanted, 500}, set(answers)
        assert wanted in answers
        assert translated(url) == translated(url) == wanted
        # the further worker, for lines with requirements, is only replaced when it is needed
        assert len(processes_of(prefork)) in (2, 3)
        assert "has ended: starting another one" in process.said
        left = processes_of(process.pid)
        process.kill(signal.SIGTERM)
        assert process.wait() == 0
        wait_for_end(left)


@pytest.mark.slow
def test_workers_end_with_a_killed_server(server: Server, tmp_path: Path) -> None:
    """As they do after a second signal (`test_shutdown.py`)."""
    write_tiny_model(tmp_path / "model")
    arguments = (str(tmp_path / "model"), "--languages", "en-de", "--engine", "torch", "--workers", "2")
    with running(server, tmp_path, *arguments) as (process, _):
        left = processes_of(process.pid)
        assert len(left) == 4
        process.kill()
        wait_for_end(left)


def test_models_that_cannot_be_served_are_explained(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    nameless = tmp_path / "model" / "meta.json"
    meta = json.loads(nameless.read_text(encoding="utf-8"))
    nameless.write_text(json.dumps({**meta, "source_language": None, "target_language": None}), encoding="utf-8")
    config = tmp_path / "serve.yaml"
    config.write_text("limits: {charcters: 7}\n", encoding="utf-8")
    model = str(tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, told in (
            ([], "no model to serve"),
            ([model, "--port", "0"], "does not name its languages"),
            ([model, "--languages", "ende", "--port", "0"], "source-target, such as en-de"),
            ([model, "--languages", "en-de", "--languages", "de-en"], "2 --languages for 1 translation models"),
            ([model, "--languages", "en-de", "--port", port], "choose another --host or --port"),
            ([str(tmp_path / "none"), "--languages", "en-de", "--port", "0"], "none"),
            (["--config", str(config)], "charcters"),
        ):
            assert main(["serve", *arguments]) in (1, 2)
            error = capfd.readouterr().err
            assert told in error and "Traceback" not in error, (arguments, error)


NETWORK = ("--languages", "en-de", "--engine", "torch", "--host", "0.0.0.0")


def test_a_server_for_the_network_names_its_addresses_and_keys(server: Server, tmp_path: Path) -> None:
    model = tmp_path / "model"
    write_tiny_model(model)
    arguments = (str(model), *NETWORK)
    with running(server, tmp_path, *arguments) as (process, url):
        port = url.rpartition(":")[2]
        wait_until(lambda: "warning" in process.said)
        assert f"{socket.gethostname()}:{port}" in process.said.partition("for colleagues: ")[2].splitlines()[0]
        assert "dragoman keys add" in process.said


@pytest.mark.slow
def test_a_server_for_the_network_with_keys_warns_of_nothing(server: Server, tmp_path: Path) -> None:
    model = tmp_path / "model"
    write_tiny_model(model)
    with Keys(tmp_path / "keys.db") as keys:
        keys.add("ada")
    with running(server, tmp_path, str(model), *NETWORK, "--keys", "keys.db") as (process, url):
        with pytest.raises(HTTPError, match="401"):
            translated(url)
        wait_until(lambda: "for colleagues" in process.said)
        assert "warning" not in process.said
