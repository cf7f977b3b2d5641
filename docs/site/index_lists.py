"""The navigation of the site follows the lists of index pages.

Sphinx takes the navigation from `toctree` directives, which code hosts show as they are. An `index.md` or `README.md`
without one gets a hidden `toctree` of the pages in its folder and below that its list items link to, in their order.
"""

import re
from typing import Any

_ITEM = re.compile(r"^[-*] .*(?:\n  .*)*", re.MULTILINE)
_PAGE = re.compile(r"\]\((?!\.\.|\w+:)([^)#]+)\.md\)")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _add_toctree)
    return {"parallel_read_safe": True}


def _add_toctree(app: Any, docname: str, source: list[str]) -> None:
    if docname.rpartition("/")[2] in ("index", "README") and "{toctree}" not in source[0]:
        source[0] += _toctree(source[0])


def _toctree(text: str) -> str:
    pages = dict.fromkeys(page for item in _ITEM.findall(text) for page in _PAGE.findall(item))
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n" if pages else ""
