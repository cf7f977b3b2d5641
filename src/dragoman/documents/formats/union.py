"""The document formats by name and by file name extension."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.documents.formats.format import Format, TextFormat, concatenation_format
from dragoman.documents.formats.html import split_html
from dragoman.documents.formats.markdown import split_markdown
from dragoman.documents.formats.subtitles import SubRip, WebVtt
from dragoman.documents.formats.word.word import WordFormat
from dragoman.documents.passage import Passage


def split_text(text: str) -> Iterator[str | Passage]:
    """Split plain text into lines, each with its line end; lines without letters are kept as they are."""
    for line in text.splitlines(keepends=True):
        yield Passage(line, line) if any(map(str.isalpha, line)) else line


FORMATS: dict[str, Format[Any]] = {
    "text": concatenation_format(split_text),
    "markdown": concatenation_format(split_markdown),
    "html": concatenation_format(split_html),
    "srt": TextFormat(SubRip().parse),
    "vtt": TextFormat(WebVtt().parse),
    "docx": WordFormat(),
}

EXTENSIONS = {
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


def get_format(name: str) -> Format[Any]:
    """Return a format by name. Raises ConfigError for an unknown one."""
    if name not in FORMATS:
        raise ConfigError(f"unknown document format '{name}': use {', '.join(FORMATS)} (--format)")
    return FORMATS[name]


def detect_format(path: Path | None) -> str:
    """Return the name of the format that a file name's extension indicates, text by default.

    Extensions of compressed files (.gz, .xz, .zst) are skipped.
    """
    if path is None:
        return "text"
    extensions = [each.lower() for each in path.suffixes if each not in (".gz", ".xz", ".zst")]
    return EXTENSIONS.get(extensions[-1], "text") if extensions else "text"
