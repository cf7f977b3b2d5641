"""The pages of the lecture as notebooks, which need no file of the repository."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from lecture_pages import FOLDER, PAGES, Page

import page_notebooks

SCALING, SLOW = "scaling.md", "noisy-channel.md"
"""Two pages that are run: one that needs only the package, and one that uses functions of `lecture_code`."""


def notebook(name: str) -> Any:
    return nbformat.from_dict(page_notebooks.notebook(Page.read(name).text, FOLDER / "lecture_code"))


def names(code: str) -> set[str]:
    """Return the functions, classes and constants that a cell defines."""
    found = set()
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {each.id for each in targets if isinstance(each, ast.Name)}
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_a_notebook_on_its_own(name: str) -> None:
    page, made = Page.read(name), notebook(name)
    nbformat.validate(made)
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    prose = "\n\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert prose.startswith(page.text.split("\n")[0]) and not re.search(r"\]\((?!https?:)", prose)
    assert [each.rpartition('"')[0].rpartition('"')[2] for each in code if "IPython" in each] == page.pictures
    included = [each for each in code if each.startswith('"""')]
    own = [each for each in code if each not in included and "IPython" not in each]
    assert len(own) == len(page.blocks) and "from lecture_code" not in "\n".join(code)
    wanted = {each for _, block in page.blocks for each in re.findall(r"^from lecture_code.* import (.*)", block, re.M)}
    defined: set[str] = set().union(*map(names, included))
    assert {each for line in wanted for each in line.split(", ")} <= defined
    assert not defined & set().union(*map(names, own)), "the page redefines what its functions use"


@pytest.mark.commands
@pytest.mark.parametrize("name", [SCALING, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_a_page_runs_as_a_notebook(name: str, tmp_path: Path) -> None:
    """The kernel finds the package, but not `lecture_code`."""
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    from notebooks import run

    made = notebook(name)
    run(made, tmp_path)
    shown = [each.data for cell in made.cells for each in cell.get("outputs", ()) if "data" in each]
    assert ["image/png" in data for data in shown] == [True] * len(Page.read(name).pictures)
