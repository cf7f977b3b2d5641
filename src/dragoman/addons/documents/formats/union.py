"""The document formats by name and by file name extension."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

from dragoman.addons.documents.formats.epub.epub import epub_format
from dragoman.addons.documents.formats.format import Format, TextFormat, concatenation_format
from dragoman.addons.documents.formats.html.page import HtmlFormat
from dragoman.addons.documents.formats.light_markup.asciidoc import parse_asciidoc
from dragoman.addons.documents.formats.light_markup.latex import parse_latex
from dragoman.addons.documents.formats.light_markup.rst import parse_rst
from dragoman.addons.documents.formats.markdown.markdown import parse_markdown
from dragoman.addons.documents.formats.messages.fluent import parse_fluent
from dragoman.addons.documents.formats.messages.gettext import GettextFormat
from dragoman.addons.documents.formats.messages.json import parse_json
from dragoman.addons.documents.formats.messages.properties import parse_properties, parse_strings
from dragoman.addons.documents.formats.messages.rails import parse_rails
from dragoman.addons.documents.formats.messages.resx import parse_resx
from dragoman.addons.documents.formats.office.presentation import presentation_format
from dragoman.addons.documents.formats.office.workbook import workbook_format
from dragoman.addons.documents.formats.opendocument.opendocument import open_document_format
from dragoman.addons.documents.formats.pdf import PdfFormat
from dragoman.addons.documents.formats.recognition import remedy_for
from dragoman.addons.documents.formats.subtitles.lyrics import parse_lyrics
from dragoman.addons.documents.formats.subtitles.subrip import SubRip
from dragoman.addons.documents.formats.subtitles.substation import parse_substation
from dragoman.addons.documents.formats.subtitles.timed_text import parse_timed_text
from dragoman.addons.documents.formats.subtitles.webvtt import WebVtt
from dragoman.addons.documents.formats.subtitles.youtube import YouTube
from dragoman.addons.documents.formats.word.word import WordFormat
from dragoman.addons.documents.formats.xliff.xliff import XliffFormat
from dragoman.addons.documents.passage import Passage
from dragoman.base.errors import ConfigError
from dragoman.text.languages.codes import is_language_code


def split_text(text: str) -> Iterator[str | Passage]:
    """Split plain text into lines, including their line breaks. Lines without letters are not translated."""
    for line in text.splitlines(keepends=True):
        yield Passage(line, line) if any(map(str.isalpha, line)) else line


FORMATS: dict[str, Format[Any]] = {
    "text": concatenation_format(split_text),
    "markdown": TextFormat(parse_markdown),
    "rst": TextFormat(parse_rst),
    "asciidoc": TextFormat(parse_asciidoc),
    "latex": TextFormat(parse_latex),
    "html": HtmlFormat(),
    "xhtml": HtmlFormat(is_xml=True),
    "srt": TextFormat(SubRip().parse),
    "vtt": TextFormat(WebVtt().parse),
    "ass": TextFormat(parse_substation),
    "sbv": TextFormat(YouTube().parse),
    "ttml": TextFormat(parse_timed_text),
    "lrc": TextFormat(parse_lyrics),
    "docx": WordFormat(),
    "odt": open_document_format("text", "an OpenDocument text (.odt)"),
    "odp": open_document_format("presentation", "an OpenDocument presentation (.odp)"),
    "ods": open_document_format("spreadsheet", "an OpenDocument spreadsheet (.ods)"),
    "pptx": presentation_format(),
    "xlsx": workbook_format(),
    "epub": epub_format(),
    "pdf": PdfFormat(),
    "po": GettextFormat(),
    "xliff": XliffFormat(),
    "json": TextFormat(parse_json),
    "properties": TextFormat(parse_properties),
    "strings": TextFormat(parse_strings),
    "resx": TextFormat(parse_resx),
    "fluent": TextFormat(parse_fluent),
    "rails": TextFormat(parse_rails),
}

EXTENSIONS = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".mdown": "markdown",
    ".mkd": "markdown",
    ".tex": "latex",
    ".latex": "latex",
    ".ltx": "latex",
    ".adoc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".asc": "asciidoc",
    ".rst": "rst",
    ".rest": "rst",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "xhtml",
    ".xht": "xhtml",
    ".srt": "srt",
    ".vtt": "vtt",
    ".ass": "ass",
    ".ssa": "ass",
    ".sbv": "sbv",
    ".ttml": "ttml",
    ".dfxp": "ttml",
    ".lrc": "lrc",
    ".docx": "docx",
    ".docm": "docx",
    ".dotx": "docx",
    ".dotm": "docx",
    ".odt": "odt",
    ".ott": "odt",
    ".odp": "odp",
    ".otp": "odp",
    ".ods": "ods",
    ".ots": "ods",
    ".pptx": "pptx",
    ".pptm": "pptx",
    ".ppsx": "pptx",
    ".potx": "pptx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xltx": "xlsx",
    ".epub": "epub",
    ".pdf": "pdf",
    ".po": "po",
    ".pot": "po",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mqxliff": "xliff",
    ".mxliff": "xliff",
    ".json": "json",
    ".arb": "json",
    ".properties": "properties",
    ".strings": "strings",
    ".resx": "resx",
    ".ftl": "fluent",
    ".yml": "rails",
    ".yaml": "rails",
}
"""The format of a file by its extension."""

WRITTEN_AS = {"pdf": "txt"}
"""The extensions of the translations of formats that are written in another one."""

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Extensions of compressed files, which are skipped."""

_EXTENSION = re.compile(r"\.(?=\S{1,16}\Z)[^A-Za-z]*[A-Za-z].*")
_OTHER_FILES = (".ts", ".mo", ".sh", ".in")
"""Extensions that are language codes too, some of them deprecated, but usually mean something else: TypeScript and Qt's
messages, compiled catalogues of gettext, shell scripts, and templates."""


def is_available(format: str) -> bool:
    """Return whether the package that a format needs, beyond those of the extra `documents`, is installed."""
    try:
        return format != "pdf" or find_spec("pypdf") is not None
    except ValueError:  # an import of it has failed
        return False


def get_format(name: str) -> Format[Any]:
    """Return a format by name. Raises ConfigError for an unknown name."""
    if name not in FORMATS:
        raise ConfigError(f"unknown document format '{name}': use {', '.join(FORMATS)} (--format)")
    return FORMATS[name]


def format_of_name(name: str | PurePath) -> str | None:
    """Return the name of the format that a file name's extension indicates, None for an unknown extension.

    Files without an extension, and those whose extension is a language code (`news.en`), are text.
    """
    extension = _extension(name)
    if extension.lower() in EXTENSIONS:
        return EXTENSIONS[extension.lower()]
    is_language = is_language_code(extension[1:]) and extension not in _OTHER_FILES
    return "text" if is_language or _EXTENSION.fullmatch(extension) is None else None


def _extension(name: str | PurePath) -> str:
    """Return the extension of a file name, without that of a compressed file."""
    suffixes = [each for each in PurePath(name).suffixes if each.lower() not in COMPRESSED]
    return suffixes[-1] if suffixes else ""


def explain_unknown_format(name: str | PurePath, data: bytes) -> str | None:
    """Return what a file of an unknown format is and what to do with it, by its bytes and its name, or None."""
    return remedy_for(_extension(name).lower(), data)


def detect_format(path: PurePath | None) -> str:
    """Return the name of the format that a file name's extension indicates; None is standard input, which is text.

    Raises ConfigError for an unknown extension, with what to do if the name or the content of the file shows its kind.
    """
    format = "text" if path is None else format_of_name(path)
    if path is not None and format is None:
        try:
            data = Path(path).read_bytes()
        except OSError:  # reported where the file is read
            data = b""
        remedy = explain_unknown_format(path, data)
        raise ConfigError(
            f"{path}: this is {remedy}"
            if remedy is not None
            else f"{path}: the format of such files is unknown. Known are {', '.join(EXTENSIONS)}; name another file's "
            f"format with --format ({', '.join(FORMATS)}), for example --format text for plain text"
        )
    return format or "text"
