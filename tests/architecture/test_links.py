"""Every relative link of the docs leads to an existing file, and to a heading that it has."""

import re
from pathlib import Path

import pytest
from documented import FENCED, faults
from repository import ROOT

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def broken_links(page: str, folder: Path) -> list[str]:
    """Return the broken links of a page, ignoring code. folder: the folder of the page."""
    lines = FENCED.sub("", page).split("\n")
    prose = (line.replace("`", "") if line.startswith("#") else re.sub(r"`[^`]*`", "", line) for line in lines)
    return faults("\n".join(prose), folder)


def test_every_link_leads_somewhere() -> None:
    found = {str(path.relative_to(ROOT)): broken_links(path.read_text(encoding="utf-8"), path.parent) for path in PAGES}
    assert {"README.md", "docs/EXPERIMENTS.md", "docs/lecture/README.md"} <= found.keys()
    assert {name: links for name, links in found.items() if links} == {}


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("[how](EXPERIMENTS.md#translation-quality), ![all](pictures/variants.png), [x](https://x.example/#y)", None),
        ("[how](EXPERIMENTS.md#translation-qualities)", "no such heading"),
        ("[how](EXPERIENCE.md)", "no such file"),
        ("![none](pictures/none.png)", "no such file"),
        ("# `--beam` and others\n[above](#--beam-and-others)", None),
        ("# A heading\n[below](#another-heading)", "no such heading"),
        ("`f[0](x)`\n```\n[no](link)\n```\n", None),
    ],
)
def test_a_broken_link_is_noticed(page: str, reason: str | None) -> None:
    found = broken_links(page, DOCS)
    assert found == [] if reason is None else len(found) == 1 and reason in found[0]
