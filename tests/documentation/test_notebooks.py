"""The notebooks of docs/notebooks run, and what is stored of their outputs is what they show."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from documented import faults
from repository import ROOT

pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

import nbformat
from notebooks import FOLDER, NOTEBOOKS, kinds, read, run, tidy

INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_stored_notebook_is_complete(name: str) -> None:
    notebook = read(FOLDER / name)
    nbformat.validate(notebook)
    assert f"]({name})" in INDEX
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "tests/fixtures/notebooks.py"
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert text.startswith("# ") and faults(re.sub("`[^`]*`", "", text), FOLDER) == []
    stored = (FOLDER / name).read_text(encoding="utf-8")
    assert str(ROOT) not in stored and str(Path.home()) not in stored and len(stored) < 500_000


@pytest.mark.commands
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("first-translator.ipynb", "inside-attention.ipynb"), marks=pytest.mark.slow),
        ("own-scorer.ipynb",),
    ],
)
def test_notebooks_run(names: Sequence[str], tmp_path: Path) -> None:
    """The second notebook of a folder finds the model of the first. Values differ between processors."""
    for name in names:
        notebook = read(FOLDER / name)
        stored = kinds(notebook)
        run(notebook, tmp_path)
        tidy(notebook)
        assert kinds(notebook) == stored
