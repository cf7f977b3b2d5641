"""The navigation of the site has the pages that index pages link to, in their order.

Sphinx takes the navigation from `toctree` directives, which repeat these links and which code hosts show as they are.
An `index.md` or `README.md` without one gets a hidden `toctree` of its links to pages in its folder and below.
"""

import re
from typing import Any

_PAGE = re.compile(r"\]\((?!\.\.|\w+:)([^)#]+)\.(?:md|ipynb)\)")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _add_toctree)
    return {"parallel_read_safe": True}


def _add_toctree(app: Any, docname: str, source: list[str]) -> None:
    pages = dict.fromkeys(_PAGE.findall(source[0]))
    if docname.rpartition("/")[2] in ("index", "README") and pages and "{toctree}" not in source[0]:
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])
