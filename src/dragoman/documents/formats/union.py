"""The formats of documents by name, and by how files' names end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.documents.formats.format import Format, PartsFormat
from dragoman.documents.formats.html import parts_of_html
from dragoman.documents.formats.markdown import parts_of_markdown
from dragoman.documents.formats.subtitles import SubRip, WebVtt
from dragoman.documents.formats.word.word import Word
from dragoman.documents.passage import Passage


def parts_of_text(text: str) -> Iterator[str | Passage]:
    """Each line, with its end."""
    for line in text.splitlines(keepends=True):
        yield Passage(line, line) if any(map(str.isalpha, line)) else line


FORMATS: dict[str, Format[Any]] = {
    "text": PartsFormat(parts_of_text),
    "markdown": PartsFormat(parts_of_markdown),
    "html": PartsFormat(parts_of_html),
    "srt": SubRip(),
    "vtt": WebVtt(),
    "docx": Word(),
}

ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".srt": "srt",
    ".vtt": "vtt",
    ".docx": "docx",
    ".docm": "docx",
}


def format_of(name: str) -> Format[Any]:
    """Raises ConfigError for a format that there is not."""
    if name not in FORMATS:
        raise ConfigError(f"there is no format '{name}' of documents: use {', '.join(FORMATS)} (--format)")
    return FORMATS[name]


def format_of_file(path: Path | None) -> str:
    """The format that a file's name tells; text where it tells none. What it is compressed with does not count."""
    if path is None:
        return "text"
    endings = [ending.lower() for ending in path.suffixes if ending not in (".gz", ".xz", ".zst")]
    return ENDINGS.get(endings[-1], "text") if endings else "text"
