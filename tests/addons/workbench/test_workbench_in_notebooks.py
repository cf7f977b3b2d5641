"""The workbench in a cell of a notebook, where an event loop runs."""

import asyncio
import os
import signal
import socket
import threading

import httpx
import pytest
from waiting import PATIENCE, wait_until

from dragoman import open_workbench


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_cell_shows_the_workbench_until_it_is_interrupted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found: list[int] = []

    def is_there() -> bool:
        try:
            found.append(httpx.get(f"http://127.0.0.1:{port}/", timeout=PATIENCE).status_code)
        except httpx.TransportError:
            return False
        return True

    def use() -> None:
        try:
            wait_until(is_there, "the workbench does not start", interval=0.05)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    async def cell() -> None:
        user = threading.Thread(target=use)
        user.start()
        open_workbench([], port=port)
        user.join()

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(cell())
    loop.close()
    signal.signal(signal.SIGINT, usual)
    assert found == [200]
