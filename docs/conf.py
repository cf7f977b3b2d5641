"""Settings of the site that `make docs` builds from these pages with Sphinx.

The pages are plain Markdown that a code host shows as well. The site opens from disk: it loads no fonts, scripts or
pictures from other servers.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "site"))  # own extensions, the last ones below

project = "dragoman"
author = "the dragoman authors"
copyright = "the dragoman authors, Apache-2.0"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "formulas",
    "index_pages",
    "notebook_pages",
    "page_notebooks",
    "repository_files",
    "passages",
    "prose_docstrings",
]
root_doc = "index"
exclude_patterns = ["site", "**/.ipynb_checkpoints"]
nitpicky = True
suppress_warnings = ["config.cache"]

# Markdown. Heading anchors follow the rule of code hosts, which tests/architecture/test_links.py checks as well.
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # notebook_pages converts notebooks
myst_heading_anchors = 6
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False  # amounts such as $5 and variables such as $HOME are no formulas
myst_dmath_allow_digits = False
html_math_renderer = "mathml"
smartquotes = False  # they turn options such as --help into a dash
myst_disable_syntax = ["footnote_ref", "footnote_def"]  # the pages have none, but regular expressions such as [^=]

# The API reference, from docstrings, whose prose the extension prose_docstrings converts. Types have no links.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
nitpick_ignore_regex = [(r"py:.*", r".*")]

# The pages. A page in a language of Pygments that it does not know is highlighted as text.
html_theme = "furo"
html_title = "dragoman"
html_static_path = ["site/static"]
html_css_files = ["dragoman.css"]
html_search_scorer = str(DOCS / "site" / "search_order.js")
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "default"
pygments_dark_style = "github-dark"

# Copies commands without the prompt and the output.
copybutton_prompt_text = r"\$ |>>> |\.\.\. |> "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "EOF"
