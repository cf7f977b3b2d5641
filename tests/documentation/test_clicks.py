"""Every page of the documentation is near its front page."""

import re
from pathlib import Path

from documented import FENCED
from repository import ROOT

DOCS = ROOT / "docs"
CLICKS = 3


def targets(page: Path) -> set[Path]:
    """Return the pages that a page links to."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(\s*([^)\s#]+\.md)[^)]*\)", text)
    return {found for link in links if (found := (page.parent / link).resolve()).is_relative_to(DOCS)}


def clicks() -> dict[Path, int]:
    """Return how many clicks each page of the docs is away from the front page."""
    found = {DOCS / "index.md": 0}
    queue = [DOCS / "index.md"]
    for page in queue:
        for target in sorted(targets(page) - found.keys()):
            found[target] = found[page] + 1
            queue.append(target)
    return found


def test_every_page_is_three_clicks_from_the_front_page() -> None:
    found = clicks()
    far = [page for page in DOCS.rglob("*.md") if found.get(page, CLICKS + 1) > CLICKS]
    assert sorted(str(page.relative_to(DOCS)) for page in far) == []
