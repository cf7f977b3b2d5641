"""A script with the texts of all pages, from which the search of a site opened from disk takes what it shows of them.

On a server, the browser reads the pages that it finds. From disk, it may not read other files, but it runs scripts.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    texts = {name: _text(app.env.get_doctree(name)) for name in sorted(app.env.all_docs)}
    script = f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
    (Path(app.outdir) / "_static" / "page_texts.js").write_text(script, encoding="utf-8")


def _text(page: nodes.document) -> str:
    """Return the text that readers see, without comments."""
    return "\n".join(
        each.astext() for each in page.findall(nodes.TextElement) if not isinstance(each, nodes.comment | nodes.Inline)
    )
