"""Jupyter notebooks are pages of the site, with the outputs that are stored in them, and can be downloaded."""

import json
import re
from pathlib import Path
from typing import Any

from page_notebooks import LINK

_FENCE = "`" * 7
"""Longer than the fences that cells contain."""


def markdown(notebook: dict[str, Any]) -> str:
    """Return the cells and the outputs of a notebook as a page."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        parts.append(f"{_FENCE}python\n{source}\n{_FENCE}")
        parts += [_output(each) for each in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = {name: "".join(value) for name, value in output.get("data", {}).items()}
    if html := data.get("text/html"):
        return _raw(html)
    for kind in ("image/svg+xml", "image/png"):
        if content := data.get(kind):
            return _raw(_image(kind, content))
    text = data.get("text/plain") or "".join(output.get("text", ()))
    return f"{_FENCE}text\n{text}\n{_FENCE}"


def _image(kind: str, content: str) -> str:
    """Return a picture as an element of its own, so that the styles and names in an SVG file stay in it."""
    from base64 import b64encode

    data = b64encode(content.encode()).decode() if kind == "image/svg+xml" else content.replace("\n", "")
    return f'<img src="data:{kind};base64,{data}" alt="the output of the cell above">'


def _raw(html: str) -> str:
    return f"{_FENCE}{{raw}} html\n{html}\n{_FENCE}"


def _read(app: Any, docname: str, source: list[str]) -> None:
    if Path(app.env.doc2path(docname)).suffix == ".ipynb":
        text = markdown(json.loads(source[0]))
        source[0] = re.sub(r"\A(# .*\n)", rf"\1\n{LINK.format(name=docname.rpartition('/')[2])}\n", text)


def _copy(app: Any, error: Exception | None) -> None:
    """Copy the notebooks to the site, beside their pages."""
    if error is None and app.builder.format == "html":
        for docname in app.env.found_docs:
            source = Path(app.env.doc2path(docname))
            if source.suffix == ".ipynb":
                (Path(app.outdir) / docname).with_suffix(".ipynb").write_bytes(source.read_bytes())


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
