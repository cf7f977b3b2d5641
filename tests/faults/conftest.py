"""One server of training processes for all tests of faults."""

from collections.abc import Iterator

import pytest
from training_runs import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """See `training_runs.Server`."""
    server = Server()
    yield server
    server.close()
