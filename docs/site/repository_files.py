"""Links from the pages to files of the repository outside docs, such as recipes, lead to pages that show the files.

A link to `../recipes/x.yaml` leads to `files/recipes/x.yaml.html`. Markdown files such as CHANGELOG.md are rendered,
and folders show the names of their files.
"""

import html
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from markdown_it import MarkdownIt
from pygments.lexers import TextLexer, guess_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

FOLDER = "files"
_METADATA = "repository-files"


def _outside(docs: Path, docname: str, target: str) -> str | None:
    """Return the repository path of the file or folder that a link leads to, or None if that is not outside docs."""
    path = (docs / docname).parent.joinpath(target.partition("#")[0]).resolve()
    root = docs.parent
    if not path.exists() or path.is_relative_to(docs) or not path.is_relative_to(root):
        return None
    return path.relative_to(root).as_posix()


def link_files(app: Sphinx, document: nodes.document) -> None:
    """Let links to files outside docs lead to the pages of the files."""
    docname = app.env.docname
    linked: list[str] = []
    for node in [*document.findall(addnodes.download_reference), *document.findall(addnodes.pending_xref)]:
        target = node["reftarget"]
        if isinstance(node, addnodes.pending_xref) and node.get("refdomain") == "doc":
            target += ".md"  # without a suffix, as if it were a page; the path is absolute outside docs
        path = _outside(Path(app.srcdir).resolve(), docname, target)
        if path is None:
            continue
        address = app.builder.get_relative_uri(docname, f"{FOLDER}/{path}")
        node.replace_self(nodes.reference("", "", *node.children, refuri=address, internal=True))
        linked.append(path)
    if linked:
        app.env.metadata[docname][_METADATA] = linked


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the pages of the linked files."""
    waiting = sorted({path for metadata in app.env.metadata.values() for path in metadata.get(_METADATA, ())})
    shown = set(waiting)
    while waiting:
        path = waiting.pop()
        name = f"{FOLDER}/{path}"
        body, linked = _body(app, path, name)
        waiting += sorted(linked - shown)
        shown |= linked
        yield name, {"title": path, "body": body}, "page.html"


def _body(app: Sphinx, path: str, name: str) -> tuple[str, set[str]]:
    """Return the HTML of a file, and the paths of other files to which it links."""
    file = Path(app.srcdir).resolve().parent / path
    if file.is_dir():
        names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in file.iterdir())
        text = "\n".join(each for each in names if each[0] != "." and each != "__pycache__/")
    else:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".md":
            return _render(app, text, path, name)
    try:
        language = guess_lexer_for_filename(file.name, text).aliases[0]
    except (ClassNotFound, IndexError):
        language = TextLexer.aliases[0]
    block = PygmentsBridge("html", app.config.pygments_style).highlight_block(text, language, force=True)
    return f"<h1>{html.escape(path)}</h1>\n{block}", set()


def _render(app: Sphinx, text: str, path: str, name: str) -> tuple[str, set[str]]:
    linked: set[str] = set()

    def address(match: re.Match[str]) -> str:
        target, _, anchor = html.unescape(match[1]).partition("#")
        if not target or "://" in target:
            return match[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if there.startswith("docs/"):
            page = there.removeprefix("docs/").removesuffix(".md")
        else:
            linked.add(there)
            page = f"{FOLDER}/{there}"
        suffix = f"#{anchor}" if anchor else ""
        return f'href="{app.builder.get_relative_uri(name, page)}{suffix}"'

    def heading(match: re.Match[str]) -> str:
        plain = html.unescape(re.sub(r"<[^>]+>", "", match[2])).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        return f'<h{match[1]} id="{anchor}">{match[2]}</h{match[1]}>'

    body = MarkdownIt("commonmark").enable("table").render(text)
    body = re.sub(r"<h(\d)>(.*?)</h\1>", heading, re.sub(r'href="([^"]*)"', address, body))
    for pattern, styled in _STYLED:
        body = re.sub(pattern, styled, body, flags=re.DOTALL)
    return body, linked


# The elements of Markdown with the classes that the theme gives those of pages.
_STYLED = (
    (r"<table>(.*?)</table>", r'<div class="table-wrapper"><table class="docutils">\1</table></div>'),
    (r"<pre><code[^>]*>(.*?)</code></pre>", r'<div class="highlight"><pre>\1</pre></div>'),
    (r"<code>", '<code class="docutils literal notranslate">'),
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("doctree-read", link_files)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
