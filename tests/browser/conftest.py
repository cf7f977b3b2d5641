"""A browser, a server with the page, and tabs that complain of whatever the browser complains of."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from browser_tabs import Tabs
    from page_server import PageServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Of one file of tests."""
    from browser_tabs import chromium

    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site() -> Iterator["PageServer"]:
    """Both ways between English and German, and into Arabic."""
    from page_server import page_served

    with page_served("en-de", "de-en", "en-ar") as server:
        yield server


@pytest.fixture
def tabs(browser: Any, site: "PageServer") -> Iterator["Tabs"]:
    """Of the site. A test fails whose tabs have complained: of a script, a policy or a fault of the page."""
    from browser_tabs import Tabs

    found = Tabs(browser, site.address)
    yield found
    found.close()


@pytest.fixture
def tab(tabs: "Tabs") -> Any:
    """From English into German."""
    return tabs.open()
