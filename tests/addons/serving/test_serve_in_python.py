"""`dragoman.serve` in a notebook and in a thread, where a program has neither its own event loop nor signals."""

import asyncio
import os
import signal
import socket
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest
from tiny_model import write_tiny_model
from waiting import PATIENCE, is_ready, wait_until

from dragoman import serve
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.server import _run


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    write_tiny_model(tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model = {"path": str(tmp_path / "model"), "source": "en", "target": "de"}
    return {"models": [model], "engine": {"name": "torch"}, "port": port}


def status(settings: dict[str, Any]) -> int:
    """Translate a text once the server is ready, and return the status of the answer."""
    url = f"http://127.0.0.1:{settings['port']}"
    wait_until(lambda: is_ready(url), "the server does not start", interval=0.05)
    body = {"q": "a dog", "source": "en", "target": "de"}
    return httpx.post(f"{url}/translate", json=body, timeout=PATIENCE).status_code


def test_a_cell_of_a_notebook_serves_until_it_is_interrupted(settings: dict[str, Any]) -> None:
    found: list[int] = []

    def use() -> None:
        try:
            found.append(status(settings))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    async def cell() -> None:
        user = threading.Thread(target=use)
        user.start()
        serve(settings)
        user.join()

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job of a shell
    loop = asyncio.new_event_loop()  # asyncio.run would handle the signal itself, which notebooks do not
    loop.run_until_complete(cell())
    loop.close()
    signal.signal(signal.SIGINT, usual)
    assert found == [200]


@pytest.mark.slow
def test_a_thread_serves_without_signals(settings: dict[str, Any]) -> None:
    started: Future[Any] = Future()
    config = ServeConfig.model_validate(settings)
    thread = threading.Thread(target=_run, args=(config, None, started.set_result))
    thread.start()
    shut_down = started.result(PATIENCE)
    try:
        assert status(settings) == 200
    finally:
        shut_down()
        thread.join(PATIENCE)
    assert not thread.is_alive()
