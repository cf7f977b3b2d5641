"""The pages of the lecture can be downloaded as notebooks, which need only an installed dragoman.

The Python blocks are the cells. Functions that a page imports from `lecture_code` are cells of their own before it, and
a picture that the code has written is shown from the file.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINK = '<p class="download"><a href="{name}.ipynb" download>Download as a notebook</a></p>'
"""The link on a page to its notebook, which is in the same folder."""

_FOLDER = "lecture"
_BLOCK = re.compile(r"^```python\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\((?:[^)\s]*/)?([^)/\s]+)\)\n?")
_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_IMPORT = re.compile(r"^from lecture_code\.(\w+) import .*\n", re.MULTILINE)
_HOW = (
    "This notebook is a page of the lecture of dragoman. It needs `pip install dragoman`. Run the cells in order. A "
    "cell that trains a small model takes up to half a minute, and the notebooks of other pages use the same model. "
    "For links into the workbench, start `dragoman workbench` in the same folder."
)


def notebook(page: str, code: Path) -> dict[str, Any]:
    """Return the notebook of a page. code: the folder of the modules of `lecture_code`."""
    cells = [
        {"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": text, **_OUTPUT.get(kind, {})}
        for number, (kind, text) in enumerate(_cells(page, code), 1)
    ]
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


_OUTPUT: dict[str, dict[str, Any]] = {"code": {"execution_count": None, "outputs": []}}


def _cells(page: str, code: Path) -> Iterator[tuple[str, str]]:
    """Yield the type and the text of each cell."""
    included: set[str] = set()
    title, _, rest = page.partition("\n")
    yield "markdown", f"{title}\n\n{_HOW}"
    for position, part in enumerate(_BLOCK.split(rest)):
        if position % 2:
            for name in _IMPORT.findall(part):
                yield from _module(name, code, included)
            yield "code", _IMPORT.sub("", part).strip()
        else:
            yield from _prose(part)


def _module(name: str, code: Path, included: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the text of a module after those that it imports, unless the notebook contains it already."""
    if name in included:
        return
    included.add(name)
    text = (code / f"{name}.py").read_text(encoding="utf-8")
    for other in _IMPORT.findall(text):
        yield from _module(other, code, included)
    yield "code", _IMPORT.sub("", text).strip()


def _prose(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text between two blocks. A picture is shown from the file that the block before it has written."""
    for position, part in enumerate(_PICTURE.split(text)):
        if position % 2:
            yield "code", f'from IPython.display import Image\n\nImage("{part}")'
        elif part.strip():
            yield "markdown", _RELATIVE_LINK.sub(r"\1", part).strip()


def _link(app: Any, docname: str, source: list[str]) -> None:
    if docname.startswith(f"{_FOLDER}/") and _BLOCK.search(source[0]):
        name = docname.rpartition("/")[2]
        source[0] = re.sub(r"\A(# .*\n)", rf"\1\n{LINK.format(name=name)}\n", source[0])


def _write(app: Any, error: Exception | None) -> None:
    """Write the notebooks beside their pages."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.srcdir) / _FOLDER
    for path in folder.glob("*.md"):
        page = path.read_text(encoding="utf-8")
        if _BLOCK.search(page):
            text = json.dumps(notebook(page, folder / "lecture_code"), ensure_ascii=False, indent=1)
            (Path(app.outdir) / _FOLDER / f"{path.stem}.ipynb").write_text(text + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _link)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
