"""The files and folders that docs/architecture.md names exist."""

import re

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*)`")
PACKAGE = ROOT / "src" / "dragoman"


def missing(page: str) -> list[str]:
    """Return the paths on a page that exist neither in the package nor in the repository."""
    return [path for path in PATH.findall(page) if not any((root / path).exists() for root in (PACKAGE, ROOT))]


def test_everything_that_the_page_names_exists() -> None:
    assert len(PATH.findall(PAGE)) > 50
    assert missing(PAGE) == []


@pytest.mark.parametrize("path", ["nn/scorer.py", "decode/rule/", "docs/lectures/"])
def test_a_wrong_path_is_found(path: str) -> None:
    assert missing(f"- **a part**: `{path}`; `nn/attention/scorers.py`, `tests/architecture/`") == [path]
