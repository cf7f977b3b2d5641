"""docs/moved.txt: old addresses of pages, which the site leads to the new ones."""

from collections.abc import Iterator

import pytest
from documented import anchors
from repository import ROOT

DOCS = ROOT / "docs"
MOVED = (DOCS / "moved.txt").read_text(encoding="utf-8")


def faults(moved: str) -> Iterator[str]:
    """Yield the lines whose old page exists, or whose new page or heading does not."""
    old: set[str] = set()
    for line in moved.splitlines():
        before, _, after = line.partition(" ")
        page, _, heading = after.partition("#")
        if not after or " " in after:
            yield f"{line}: not an old and a new page"
        elif before in old:
            yield f"{line}: moved twice"
        elif (DOCS / before).exists():
            yield f"{line}: the old page exists"
        elif not (DOCS / page).is_file():
            yield f"{line}: there is no new page"
        elif heading and heading not in anchors((DOCS / page).read_text(encoding="utf-8")):
            yield f"{line}: the new page has no such heading"
        old.add(before)


def test_old_addresses_lead_to_pages() -> None:
    assert MOVED.count("\n") > 30
    assert list(faults(MOVED)) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("gone.md architecture.md", None),
        ("gone.md architecture.md#layers-of-the-code", "no such heading"),
        ("gone.md nowhere.md", "no new page"),
        ("index.md architecture.md", "the old page exists"),
        ("gone.md", "not an old and a new page"),
        ("gone.md architecture.md\ngone.md index.md", "moved twice"),
        ("gone.md older.md\nolder.md index.md", "no new page"),
    ],
)
def test_a_wrong_line_is_noticed(line: str, reason: str | None) -> None:
    found = list(faults(line))
    assert found == [] if reason is None else len(found) == 1 and reason in found[0]
