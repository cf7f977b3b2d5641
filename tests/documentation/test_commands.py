"""The commands on the pages of these folders of docs run, and print what the pages show."""

import os
from pathlib import Path

import pytest
from code_blocks import form_faults, inputs
from page_commands import PageCommands
from page_inputs import DATA, INPUTS, provide
from repository import ROOT

DOCS = ROOT / "docs"
FOLDERS = ("start", "paths", "how-to", "explanation")
PAGES = sorted(str(path.relative_to(DOCS)) for folder in FOLDERS for path in (DOCS / folder).rglob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_the_code_blocks_follow_the_convention(name: str) -> None:
    assert form_faults((DOCS / name).read_text(encoding="utf-8"), {*INPUTS, DATA}) == []


SLOW = ("how-to/corpora/hold-out.md",)
"""Pages that only `make test-all` runs."""


@pytest.mark.commands
@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in PAGES])
def test_the_commands_run(name: str, address: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    environment = {}
    if DATA in inputs(page):
        if "DRAGOMAN_DATA" not in os.environ:
            pytest.skip("the page needs the corpora in DRAGOMAN_DATA")
        environment["DRAGOMAN_DATA"] = os.environ["DRAGOMAN_DATA"]
    folder = tmp_path / "page"
    folder.mkdir()
    provide(inputs(page), folder, address, tmp_path_factory)
    with PageCommands(address, folder, tmp_path / "scratch", environment=environment) as commands:
        commands.run_page(page)
