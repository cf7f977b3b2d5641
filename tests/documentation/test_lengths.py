"""Pages are short: a page answers one question."""

from pathlib import Path

import pytest
from repository import ROOT

LIMITS = {
    "README.md": 500,
    "docs/start/*.md": 600,
    "docs/start/tutorial/*.md": 1000,
    "docs/how-to/**/*.md": 600,
    "docs/explanation/*.md": 2000,
}
"""Maximum number of words of a page, code included."""


def words(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("pattern", LIMITS)
def test_pages_are_short(pattern: str) -> None:
    pages = {str(path.relative_to(ROOT)): words(path) for path in ROOT.glob(pattern)}
    assert len(pages) > 0
    assert {name: count for name, count in pages.items() if count > LIMITS[pattern]} == {}
