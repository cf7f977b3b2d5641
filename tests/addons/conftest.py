"""The browser in which pages of add-ons are tested: Chromium, controlled by Playwright."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, shared by the tests of one file."""
    from browser_tabs import chromium

    with chromium() as found:
        yield found
