"""A server with the page, and tabs that record every complaint of the browser."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from browser_tabs import Tabs
    from page_server import PageServer


@pytest.fixture(scope="module")
def site() -> Iterator["PageServer"]:
    """A server that translates between English and German in both directions, and into Arabic."""
    from page_server import page_served

    with page_served("en-de", "de-en", "en-ar") as server:
        yield server


@pytest.fixture
def tabs(browser: Any, site: "PageServer") -> Iterator["Tabs"]:
    """Opens tabs of the page. A test fails if its tabs reported an error of a script, the policy or the page."""
    from browser_tabs import Tabs

    found = Tabs(browser, site.address)
    yield found
    found.close()


@pytest.fixture
def tab(tabs: "Tabs") -> Any:
    """A tab that translates from English into German."""
    return tabs.open()
