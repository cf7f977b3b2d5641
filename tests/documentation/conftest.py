"""The server that runs the commands of pages."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from training_runs import Server


@pytest.fixture(scope="session")
def address(server: Server) -> Iterator[str]:
    """The Unix socket of a `command_server.py` of this test process."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:  # the path of a socket must be short
        path = str(Path(folder) / "socket")
        server.listen(path)
        yield path
