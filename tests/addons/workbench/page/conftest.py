"""A workbench with two small models and a run, and its tabs. Files with other models replace the fixture `server`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from workbench_server import WorkbenchServer
    from workbench_tabs import WorkbenchTabs


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["WorkbenchServer"]:
    """A workbench with the models `one` and `two`, and the run `run`."""
    from workbench_server import workbench_served, write_workspace

    with workbench_served(write_workspace(tmp_path_factory.mktemp("workspace"))) as found:
        yield found


@pytest.fixture
def tabs(browser: Any, server: "WorkbenchServer") -> Iterator["WorkbenchTabs"]:
    """Opens tabs of the workbench. A test fails if its tabs reported an error of a script, the policy or the page."""
    from workbench_tabs import WorkbenchTabs

    found = WorkbenchTabs(browser, server.address)
    yield found
    found.close()
