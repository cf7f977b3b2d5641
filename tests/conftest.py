"""Lets tests import the helpers in tests/fixtures, and gives all of them one server of processes."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))

from training_runs import Server

settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("busy")
"""Several workers and whoever else is on the machine share it, so how long an example takes says nothing."""

DEAR = ("faults", "learn", "property")
"""Folders whose tests take longest. They begin, so that at the end there are short ones to share between workers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the dear ones first; otherwise the order stays."""
    places = {name: place for place, name in enumerate(DEAR)}
    items.sort(key=lambda item: places.get(item.path.parent.name, len(DEAR)))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """See `training_runs.Server`."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def quick_reports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What of a short run takes most of the time is left out, except where a test is marked `real_reports`: the
    picture of its curves, and the machine's speed.
    """
    if "real_reports" in request.keywords:
        return
    monkeypatch.setattr("dragoman.training.progress.report.draw_curves", lambda log, png: None)
    monkeypatch.setattr("dragoman.training.profiling.utilisation._SIZE", {"cpu": 64})
    monkeypatch.setattr("dragoman.training.profiling.utilisation._SECONDS", 0.001)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """torch uses one thread, where another engine's threads do the work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
