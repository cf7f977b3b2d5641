"""A script with the text of each section of each page, in which the site's search looks and from which it quotes.

Sphinx's own index knows only which page has a word. Questions are answered by sections, and words of a heading, or
several words close together, say more than words anywhere on a long page. As a script, the texts can also be read by a
site that is opened from disk.

Users of other toolkits call things by other names. So each folder of pages may have a file `queries.yaml` with what
people type who look for a page or section (`page` or `page#section`): queries, with commas between them. They are
searched, but not shown (document expansion, Nogueira et al. 2019).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError

_PARTS = (nodes.section, addnodes.desc)
"""What is a passage of its own: a section, and a function or class of the API reference."""


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _load)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _load(app: Any, pagename: str, *_: Any) -> None:
    if pagename == "search":
        app.add_js_file("passages.js")


def _write(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    queries = _queries(Path(app.srcdir))
    pages = [
        [name, [[*passage, queries.pop(name + passage[0], [])] for passage in _passages(app.env.get_doctree(name))]]
        for name in sorted(app.env.all_docs)
    ]
    if queries:
        raise ExtensionError(f"queries.yaml has queries for pages or sections that do not exist: {', '.join(queries)}")
    script = f"const PASSAGES = {json.dumps(pages, ensure_ascii=False, separators=(',', ':'))};\n"
    (Path(app.outdir) / "_static" / "passages.js").write_text(script, encoding="utf-8")


def _queries(docs: Path) -> dict[str, list[str]]:
    """Return the queries of `queries.yaml` files by the address of their page or section, such as `page#section`."""
    queries = {}
    for path in sorted(docs.rglob("queries.yaml")):
        folder = path.parent.relative_to(docs)
        for address, text in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            queries[(folder / address).as_posix()] = re.split(r",\s+", text.strip())
    return queries


def _passages(page: nodes.document) -> Iterator[tuple[str, str, str, str]]:
    """Return the anchor, heading, prose and code of each part of a page. The first one is the page itself."""
    for part in page.findall(lambda node: isinstance(node, _PARTS)):
        heading = next(iter(part.findall(nodes.title)), None) if isinstance(part, nodes.section) else part.children[0]
        signatures = isinstance(part, addnodes.desc)
        identifiers = part.children[0].get("ids", []) if signatures else part["ids"]
        if heading is None or (signatures and not identifiers):
            continue
        is_page = part.parent is page
        name = identifiers[0] if signatures else heading.astext()
        anchor = "" if is_page else f"#{identifiers[0]}"
        texts = list(_texts(part))
        prose, code = (" ".join(text for text, is_code in texts if is_code is kind) for kind in (False, True))
        yield anchor, name, prose, code


def _texts(part: nodes.Node) -> Iterator[tuple[str, bool]]:
    """Return what readers see of a part, without its heading, comments and inner parts, and whether it is code."""
    for child in part.children:
        if isinstance(child, (*_PARTS, nodes.title, nodes.Invisible, nodes.raw)):
            continue
        if isinstance(child, nodes.TextElement):
            yield " ".join(child.astext().split()), isinstance(child, nodes.literal_block)
        elif not isinstance(child, nodes.Text):
            yield from _texts(child)
