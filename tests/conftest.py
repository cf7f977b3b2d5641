"""Make the helpers in tests/fixtures importable, and share one server of processes among all tests."""

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))

from kept_detector import keep_detector
from training_runs import Server

from dragoman.native import compiler
from dragoman.training.profiling import utilisation
from dragoman.training.progress import report

if TYPE_CHECKING:
    from browser_tabs import Chromium

settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=20)
settings.load_profile("busy")
"""The machine is shared by several workers and other programs, so the duration of an example is not checked. Each run
draws other examples, so a few of them suffice.
"""
settings.register_profile("thorough", settings.get_profile("busy"), max_examples=100)
"""More examples, for `make test-all`."""
settings.register_profile("fixed", settings.get_profile("busy"), derandomize=True)
"""The same examples in each run (`pytest --hypothesis-profile=fixed`)."""

TESTS = Path(__file__).parent
SLOW_ROOMS = ("training", "documentation", "extending", "addons", "tasks", "models", "decode")
"""Folders with the slowest tests. They run first, so that short tests remain to be balanced between workers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that tests/fixtures/levels.py passes."""
    names = [each.name for each in compiler.INSTRUCTION_SETS]
    parser.addoption("--instructions", choices=names, default=names[0], help="the native engine's best instruction set")


def pytest_configure(config: pytest.Config) -> None:
    """Hide instruction sets that are better than `--instructions`.

    Garbage is not collected while tests are: nothing becomes garbage, and it takes a quarter of the time.
    """
    gc.disable()
    names = [each.name for each in compiler.INSTRUCTION_SETS]
    compiler.INSTRUCTION_SETS = compiler.INSTRUCTION_SETS[names.index(config.getoption("--instructions")) :]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put slow tests first; otherwise keep the order."""
    ranks = {name: rank for rank, name in enumerate(SLOW_ROOMS)}
    items.sort(key=lambda item: ranks.get(item.path.relative_to(TESTS).parts[0], len(SLOW_ROOMS)))


def pytest_collection_finish() -> None:
    """Exclude everything that has been imported from garbage collection, which would visit it again and again.

    Collections are rarer than usual: a worker has millions of objects that tests share, and it ends soon.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A `training_runs.Server` for the whole session."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator["Chromium"]:
    """A browser for the whole session."""
    from browser_tabs import Chromium

    found = Chromium()
    yield found
    found.close()


@pytest.fixture(scope="module")
def browser(chromium: "Chromium") -> Iterator[Any]:
    """The browser, for the tests of one file. Its asyncio loop runs meanwhile, so that they can start no other one."""
    asyncio._set_running_loop(chromium.loop)
    yield chromium.browser
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Skip `fsync`, which protects files from a power failure only. Tests of its effects replace it themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def undetected_languages() -> Iterator[None]:
    """Detect no languages for model cards, because this loads a large model. A test of the detection restores it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.checkpoint.card.languages.sample_language", lambda sentences: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_detector() -> Iterator[None]:
    """Load the model that detects languages once, instead of once per training run."""
    with pytest.MonkeyPatch.context() as patch:
        keep_detector(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def only_requested_systems() -> Iterator[None]:
    """Estimate no statistical models beside small neural ones, unless `systems` names them, because it takes longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.tasks.translation.systems.LARGEST", 0)
        yield


REAL_REPORTS = ((report, "draw_curves"), (utilisation, "_SIZE"), (utilisation, "_SECONDS"))
"""The slowest parts of a run: plots and the speed measurement."""
ORIGINALS = [getattr(module, name) for module, name in REAL_REPORTS]


@pytest.fixture(scope="session", autouse=True)
def quick_reports() -> Iterator[None]:
    """Skip the slowest parts of a run, in fixtures of modules as well."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), quick in zip(REAL_REPORTS, (lambda log, png: None, {"cpu": 64}, 0.001), strict=True):
            patch.setattr(module, name, quick)
        yield


@pytest.fixture(autouse=True)
def real_reports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore them for a test marked `real_reports`."""
    if "real_reports" in request.keywords:
        for (module, name), original in zip(REAL_REPORTS, ORIGINALS, strict=True):
            monkeypatch.setattr(module, name, original)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """Restore the number of torch's threads, which some functions set for the process: later tests would be slower."""
    before = torch.get_num_threads()
    yield
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Let torch use one thread, where the threads of another engine do the work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
