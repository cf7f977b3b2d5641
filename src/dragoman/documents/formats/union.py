"""The formats of documents by name, and by how files' names end."""

from collections.abc import Callable, Iterator
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.documents.formats.html import parts_of_html
from dragoman.documents.formats.markdown import parts_of_markdown
from dragoman.documents.formats.text import parts_of_text
from dragoman.documents.passage import Passage

Parts = Callable[[str], Iterator[str | Passage]]
"""A document as what stays and what is translated, in order; joined, they are the document."""

FORMATS: dict[str, Parts] = {"text": parts_of_text, "markdown": parts_of_markdown, "html": parts_of_html}

_ENDINGS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".xhtml": "html"}


def format_of(name: str) -> Parts:
    """Raises ConfigError for a format that there is not."""
    if name not in FORMATS:
        raise ConfigError(f"there is no format '{name}' of documents: use {', '.join(FORMATS)} (--format)")
    return FORMATS[name]


def format_of_file(path: Path | None) -> str:
    """The format that a file's name tells; text where it tells none. What it is compressed with does not count."""
    if path is None:
        return "text"
    endings = [ending.lower() for ending in path.suffixes if ending not in (".gz", ".xz", ".zst")]
    return _ENDINGS.get(endings[-1], "text") if endings else "text"
